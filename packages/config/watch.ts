import { createHash } from 'node:crypto'
import { type Clock, reasonOf } from '@plat/core'
import { PACKED_SUFFIX, readBounded, unpack } from './bounded.ts'

/** Maximum size of a watched file in bytes. */
export const MAX_WATCHED_BYTES = 64 * 1024 * 1024

export interface WatchOptions {
  path: string
  /** Interval between checks, in milliseconds. */
  everyMs: number
  clock: Clock
  /** Called with the content at the first check and after each change; null while the file does not exist. */
  onBytes(bytes: Uint8Array | null): void | Promise<void>
  /** Called with errors of reading or of `onBytes`, once per content. Without it, `check` rejects. */
  onError?(error: unknown): void
  /** Called after each check, whatever its result, so that callers can bound the age of the content. */
  onLooked?(): void
}

export interface FileWatch {
  /** Checks now. Resolves when a check that began after this call is done, including `onBytes`. */
  check(): Promise<void>
  stop(): void
}

/**
 * Watches a file by its content, so that renames, rewrites with an old time stamp and symlink swaps of mounted ConfigMaps are detected, and a
 * rewrite of the same content is ignored. Checks never overlap. The caller awaits the first `check` before it starts to serve. Content that
 * `onBytes` refused is not passed again until it changes.
 *
 * A missing file is read from `<path>.gz` if that exists: a ConfigMap holds large files compressed.
 */
export function watchFile(options: WatchOptions): FileWatch {
  let seen: string | null = null
  let running: Promise<void> | null = null
  let waiting: Promise<void> | null = null
  let stopped = false

  async function look(): Promise<void> {
    if (stopped) return
    const found = await readEither(options.path, seen)
    if (stopped) return
    options.onLooked?.()
    if (found.key === seen) return
    seen = found.key
    try {
      if (found.kind === 'error') throw found.error
      await options.onBytes(found.bytes)
    } catch (error) {
      if (options.onError === undefined) throw error
      options.onError(error)
    }
  }

  function start(): Promise<void> {
    const mine = look().finally(() => {
      running = null
    })
    running = mine
    return mine
  }

  function check(): Promise<void> {
    if (running === null) return start()
    waiting ??= running
      .catch(() => {})
      .then(() => {
        waiting = null
        return start()
      })
    return waiting
  }

  const stopTimer = options.clock.every(options.everyMs, () => {
    // A check that takes longer than the interval does not queue further ones.
    if (running === null) void check()
  })
  return {
    check,
    stop() {
      stopped = true
      stopTimer()
    },
  }
}

type FileContent =
  | { kind: 'bytes'; key: string; bytes: Uint8Array | null }
  | { kind: 'error'; key: string; error: unknown }

/** `seen`: key of the previous content; for an unchanged compressed file only the key is returned. */
async function readEither(path: string, seen: string | null): Promise<FileContent> {
  const plain = await read(path)
  if (plain.kind === 'error' || plain.bytes !== null) return plain
  const packed = await read(path + PACKED_SUFFIX)
  if (packed.kind === 'error' || packed.bytes === null) return packed
  const key = `packed ${packed.key}`
  if (key === seen) return { kind: 'bytes', key, bytes: null }
  try {
    return { kind: 'bytes', key, bytes: await unpack(packed.bytes, MAX_WATCHED_BYTES) }
  } catch (error) {
    return { kind: 'error', key, error: new Error(`${path}${PACKED_SUFFIX}: ${reasonOf(error)}`) }
  }
}

async function read(path: string): Promise<FileContent> {
  try {
    const bytes = await readBounded(path, MAX_WATCHED_BYTES)
    return { kind: 'bytes', key: createHash('sha256').update(bytes).digest('hex'), bytes }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'bytes', key: 'missing', bytes: null }
    return { kind: 'error', key: `error ${String(error)}`, error }
  }
}
