import { dirname } from 'node:path'
import type { AppendHandle, Files, ReadHandle } from '@plat/state'

/** One thing that happened to the disk. */
export type DiskEvent =
  | { readonly op: 'write'; readonly path: string; readonly at: number; readonly bytes: Buffer }
  | { readonly op: 'sync'; readonly path: string }
  | { readonly op: 'truncate'; readonly path: string; readonly size: number }
  | { readonly op: 'replace'; readonly path: string; readonly bytes: Buffer }
  | { readonly op: 'rename'; readonly path: string; readonly to: string }
  | { readonly op: 'remove'; readonly path: string }

/** A fault at the n-th operation (counted from 0). */
export interface DiskFault {
  readonly at: number
  readonly kind: 'EIO' | 'ENOSPC' | 'short'
}

interface Stored {
  /** Content for readers: the page cache. */
  cache: Buffer
  /** Content after a power failure. */
  durable: Buffer
  /** Parts of the cache that a failed sync marked clean: no later sync brings them to disk. */
  dead: [start: number, end: number][]
}

/**
 * A disk in memory with the failure behavior of a real one: data that was not synced is lost at a power failure, and data dropped by a failed sync
 * stays dropped until it is written again. Records every operation and fails the chosen ones.
 */
export class MemoryDisk implements Files {
  readonly events: DiskEvent[] = []
  readonly #files = new Map<string, Stored>()
  readonly #faults: readonly DiskFault[]
  #operations = 0

  constructor(files: ReadonlyMap<string, Buffer> = new Map(), faults: readonly DiskFault[] = []) {
    this.#faults = faults
    for (const [path, bytes] of files) this.#files.set(path, { cache: bytes, durable: bytes, dead: [] })
  }

  /** Operations so far, failed ones included. */
  get operations(): number {
    return this.#operations
  }

  /** Returns the content of each file after a power failure. */
  afterPowerCut(): Map<string, Buffer> {
    return new Map([...this.#files].map(([path, { durable }]) => [path, durable]))
  }

  openAppend(path: string): AppendHandle {
    this.#step(path)
    return this.#handleOf(path)
  }

  #handleOf(path: string): AppendHandle {
    const stored = this.#files.get(path) ?? { cache: Buffer.alloc(0), durable: Buffer.alloc(0), dead: [] }
    this.#files.set(path, stored)
    return {
      size: () => stored.cache.length,
      read: (target, position) => readFrom(stored, target, position),
      write: (bytes) => {
        const written = this.#write(path, stored, bytes)
        const fault = this.#sync(path, stored)
        if (fault !== null) throw fault
        return written
      },
      // Two operations that fail apart, and a moment between them in which the power may be cut.
      append: (bytes, done) => {
        const written = this.#write(path, stored, bytes)
        setImmediate(() => setImmediate(() => done(this.#sync(path, stored), written)))
      },
      truncate: (size) => {
        this.#step(path)
        stored.cache = stored.cache.subarray(0, size)
        stored.dead = stored.dead.filter(([start]) => start < size)
        this.events.push({ op: 'truncate', path, size })
      },
      close: () => {},
    }
  }

  replace(path: string, bytes: Uint8Array): void {
    this.rewrite(path, bytes).close()
  }

  rewrite(path: string, bytes: Uint8Array): AppendHandle {
    this.#step(path)
    const copy = Buffer.from(bytes)
    this.#files.set(path, { cache: copy, durable: copy, dead: [] })
    this.events.push({ op: 'replace', path, bytes: copy })
    return this.#handleOf(path)
  }

  readWhole(path: string): Uint8Array | null {
    return this.#files.get(path)?.cache ?? null
  }

  exists(path: string): boolean {
    return this.#files.has(path)
  }

  openRead(path: string): ReadHandle {
    const stored = this.#files.get(path)
    if (stored === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
    return {
      size: () => stored.cache.length,
      read: (target, position) => readFrom(stored, target, position),
      close: () => {},
    }
  }

  list(folder: string): readonly string[] {
    return [...this.#files.keys()]
      .filter((path) => dirname(path) === folder)
      .map((path) => path.slice(folder.length + 1))
  }

  rename(from: string, to: string): void {
    this.#step(from)
    const stored = this.#files.get(from)
    if (stored === undefined) throw Object.assign(new Error(`ENOENT: ${from}`), { code: 'ENOENT' })
    this.#files.delete(from)
    this.#files.set(to, stored)
    this.events.push({ op: 'rename', path: from, to })
  }

  remove(path: string): void {
    this.#step(path)
    this.#files.delete(path)
    this.events.push({ op: 'remove', path })
  }

  #write(path: string, stored: Stored, bytes: Uint8Array): number {
    const short = this.#fault()?.kind === 'short'
    this.#step(path)
    const written = Buffer.from(bytes.subarray(0, short ? bytes.length >> 1 : bytes.length))
    this.events.push({ op: 'write', path, at: stored.cache.length, bytes: written })
    stored.cache = Buffer.concat([stored.cache, written])
    return written.length
  }

  #sync(path: string, stored: Stored): Error | null {
    try {
      this.#step(path)
    } catch (error) {
      stored.dead.push([stored.durable.length, stored.cache.length])
      return error instanceof Error ? error : new Error(String(error))
    }
    stored.durable = Buffer.from(stored.cache)
    for (const [start, end] of stored.dead) stored.durable.fill(0, start, end)
    this.events.push({ op: 'sync', path })
    return null
  }

  #fault(): DiskFault | undefined {
    return this.#faults.find(({ at }) => at === this.#operations)
  }

  /** Counts an operation, and throws where one is to fail. A short write is not an error by itself. */
  #step(path: string): void {
    const fault = this.#fault()
    this.#operations++
    if (fault === undefined || fault.kind === 'short') return
    throw Object.assign(new Error(`${fault.kind}: ${path}`), { code: fault.kind })
  }
}

/** Returns the number of bytes read: 0 after the end. */
function readFrom({ cache }: Stored, target: Uint8Array, position: number): number {
  return cache.copy(target, 0, Math.min(position, cache.length), position + target.length)
}
