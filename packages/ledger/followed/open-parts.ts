import { constants } from 'node:fs'
import { type FileHandle, open, opendir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { reasonOf } from '@plat/core'
import { isMissing } from '@plat/state'
import type { ReadAt } from '../lines.ts'

/** Names that are looked at in the folder of a followed ledger. */
const MAX_NAMES = 100_000
/** Files of a followed ledger that are opened at once. */
const MAX_PARTS = 1000
/** Maximum bytes of `<path>.head`. */
const MAX_HEAD_BYTES = 64 * 1024

/** Thrown when a file of a followed ledger cannot be read. */
export class UnreadableError extends Error {}

/** One file of a followed ledger, up to the size that it had when it was opened. */
export interface Part extends ReadAt {
  readonly path: string
  readonly size: number
}

/** The files of a ledger in order: `<path>.<20 digits>.jsonl`, which were renamed, and the file at `path`. */
export class Parts {
  readonly all: readonly Part[]
  readonly #handles: readonly FileHandle[]

  private constructor(all: readonly Part[], handles: readonly FileHandle[]) {
    this.all = all
    this.#handles = handles
  }

  /** Throws UnreadableError. `from`: renamed files that end before this record are left out. */
  static async open(path: string, from: number): Promise<Parts> {
    const handles: FileHandle[] = []
    try {
      // The active file first: if it is renamed meanwhile, its descriptor still is the right one.
      const active = await openRegular(path)
      handles.push(active)
      const all: Part[] = []
      for (const name of await renamedFiles(path, from)) {
        const handle = await openRegular(join(dirname(path), name))
        handles.push(handle)
        if (await isSameFile(handle, active)) continue
        all.push(await partOf(name, handle))
      }
      all.push(await partOf(path, active))
      return new Parts(all, handles)
    } catch (error) {
      await Promise.all(handles.map((handle) => handle.close()))
      if (error instanceof UnreadableError) throw error
      throw new UnreadableError(reasonOf(error))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#handles.map((handle) => handle.close()))
  }
}

/** Returns the text of `<path>.head`; null when it does not exist. Throws UnreadableError. */
export async function readHeadFile(path: string): Promise<string | null> {
  const found = await openRegular(`${path}.head`).catch((error: unknown) => {
    if (error instanceof MissingError) return null
    throw error
  })
  if (found === null) return null
  await using file = found
  const buffer = Buffer.alloc(MAX_HEAD_BYTES + 1)
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
  if (bytesRead > MAX_HEAD_BYTES) throw new UnreadableError(`${path}.head is larger than ${MAX_HEAD_BYTES} bytes`)
  return buffer.toString('utf8', 0, bytesRead)
}

class MissingError extends UnreadableError {}

/** Neither follows a link nor waits for the writer of a FIFO. */
async function openRegular(path: string): Promise<FileHandle> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: unknown) => {
    if (isMissing(error)) throw new MissingError(`${path}: no such file`)
    if (codeOf(error) === 'ELOOP') throw new UnreadableError(`${path} is a symbolic link: name the file itself`)
    throw new UnreadableError(reasonOf(error))
  })
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw new UnreadableError(`${path} is not a regular file`)
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null
}

async function partOf(path: string, handle: FileHandle): Promise<Part> {
  const { size } = await handle.stat()
  return {
    path,
    size,
    async read(target, position) {
      const length = Math.min(target.length, Math.max(size - position, 0))
      return length === 0 ? 0 : (await handle.read(target, 0, length, position)).bytesRead
    },
  }
}

async function isSameFile(one: FileHandle, other: FileHandle): Promise<boolean> {
  const [left, right] = await Promise.all([one.stat(), other.stat()])
  return left.ino === right.ino && left.dev === right.dev
}

/** Returns the names of the renamed files that may have record `from` or a later one, in order. */
async function renamedFiles(path: string, from: number): Promise<readonly string[]> {
  const start = `${basename(path)}.`
  const names: string[] = []
  let seen = 0
  for await (const { name } of await opendir(dirname(path))) {
    if (++seen > MAX_NAMES) throw new UnreadableError(`${dirname(path)} has more than ${MAX_NAMES} files`)
    if (name.startsWith(start) && /^\d{20}\.jsonl$/.test(name.slice(start.length))) names.push(name)
  }
  names.sort()
  const firstOf = (name: string) => Number(name.slice(start.length, start.length + 20))
  const needed = names.filter((_, index) => {
    const next = names[index + 1]
    return next === undefined || firstOf(next) > from
  })
  if (needed.length > MAX_PARTS) throw new UnreadableError(`${path} has more than ${MAX_PARTS} renamed files to read`)
  return needed
}
