import type { SystemCalls } from '@plat/state'

/** The errors that a full, read-only or failing disk and an exhausted process give. */
export const FAULT_CODES = ['EIO', 'EMFILE', 'EROFS', 'ENOSPC'] as const

/** System calls from number `at` (counted from 0) on fail, `calls` of them; `short` writes half and reports no error. */
export interface CallFault {
  readonly at: number
  readonly calls: number
  readonly code: (typeof FAULT_CODES)[number] | 'short'
}

/** Whether folder entries, or bytes of files, that no sync made durable survive. */
export interface Survival {
  readonly names: boolean
  readonly bytes: boolean
}

interface Inode {
  /** Content for readers: the page cache. */
  cache: Buffer
  /** Content after a power failure. */
  durable: Buffer
  /** Parts of the cache that a failed sync marked clean: no later sync brings them to disk. */
  dead: (readonly [start: number, end: number])[]
}

/** A descriptor of the code under test, or of a stranger that was given a number after it was closed. */
type Descriptor = { readonly folder: string } | { readonly inode: Inode } | 'stranger'

/**
 * The system calls of `Files` on a disk in memory. Each call can be made to fail, a power cut loses what was not synced, and the
 * number of a closed descriptor is reused at once for a file that is not the caller's, so that any further use of it is detected.
 */
export class SimulatedKernel implements SystemCalls {
  /** Uses of descriptors that belong to strangers. */
  readonly foreign: string[] = []
  readonly #fault: CallFault | null
  readonly #onCall: (call: string) => void
  readonly #descriptors = new Map<number, Descriptor>()
  #names = new Map<string, Inode>()
  #durableNames = new Map<string, Inode>()
  #calls = 0

  /** `onCall` is called before each system call. */
  constructor(
    files: ReadonlyMap<string, Buffer> = new Map(),
    fault: CallFault | null = null,
    onCall: (call: string) => void = () => {},
  ) {
    this.#fault = fault
    this.#onCall = onCall
    for (const [path, bytes] of files) this.#names.set(path, { cache: bytes, durable: bytes, dead: [] })
    this.#durableNames = new Map(this.#names)
  }

  /** Calls so far, failed ones included. */
  get calls(): number {
    return this.#calls
  }

  /** Descriptors that the code under test has open. */
  get open(): number {
    return [...this.#descriptors.values()].filter((descriptor) => descriptor !== 'stranger').length
  }

  /** Returns the content of each file after a power failure. */
  afterPowerCut(): Map<string, Buffer> {
    return this.surviving({ names: false, bytes: false })
  }

  /** Returns the content of each file for a process on the running machine. */
  contents(): Map<string, Buffer> {
    return this.surviving({ names: true, bytes: true })
  }

  /** Returns the content of each file if only so much survives. */
  surviving({ names, bytes }: Survival): Map<string, Buffer> {
    const entries = names ? this.#names : this.#durableNames
    return new Map([...entries].map(([path, { cache, durable }]) => [path, bytes ? cache : durable]))
  }

  openSync(path: string, flags: string | number): number {
    this.#step('open')
    const isFolder = [...this.#names.keys()].some((name) => name.startsWith(`${path}/`))
    const descriptor: Descriptor = isFolder || flags === 'r' ? this.#existing(path) : { inode: this.#made(path, flags) }
    const fd = this.#descriptors.size
    this.#descriptors.set(fd, descriptor)
    return fd
  }

  closeSync(fd: number): void {
    this.#get(fd, 'close')
    // The number is free even when the call fails; another part of the process gets it at once.
    this.#descriptors.set(fd, 'stranger')
    this.#step('close')
  }

  fstatSync(fd: number): { size: number } {
    this.#step('fstat')
    return { size: this.#inode(fd, 'fstat').cache.length }
  }

  statSync(path: string): { size: number } {
    this.#step('stat')
    const inode = this.#names.get(path)
    if (inode === undefined) throw failure('ENOENT', 'stat')
    return { size: inode.cache.length }
  }

  readSync(fd: number, target: Uint8Array, { position }: { readonly position: number }): number {
    this.#step('read')
    const { cache } = this.#inode(fd, 'read')
    return cache.copy(target, 0, Math.min(position, cache.length), position + target.length)
  }

  writeSync(fd: number, bytes: Uint8Array, { position }: { readonly position: number | null }): number {
    const inode = this.#inode(fd, 'write')
    return position === null ? this.#write(inode, bytes) : this.#overwrite(inode, bytes, position)
  }

  /** The bytes are in the page cache at once and durable two turns later, or lost there. */
  write(fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void {
    const inode = this.#inode(fd, 'write')
    const copy = Buffer.from(bytes)
    setImmediate(() => {
      this.#inode(fd, 'write')
      let written = 0
      let fault: Error | null = null
      try {
        written = this.#write(inode, copy)
      } catch (error) {
        fault = error instanceof Error ? error : new Error(String(error))
      }
      setImmediate(() => done(fault, written))
    })
  }

  fdatasyncSync(fd: number): void {
    this.fsyncSync(fd)
  }

  fsyncSync(fd: number): void {
    const descriptor = this.#get(fd, 'fsync')
    if (descriptor === 'stranger') return
    if ('folder' in descriptor) {
      this.#step('fsync of a folder')
      this.#durableNames = new Map(this.#names)
    } else {
      this.#sync(descriptor.inode)
    }
  }

  ftruncateSync(fd: number, size: number): void {
    this.#step('ftruncate')
    const inode = this.#inode(fd, 'ftruncate')
    inode.cache = inode.cache.subarray(0, size)
    inode.dead = inode.dead.filter(([start]) => start < size)
  }

  renameSync(from: string, to: string): void {
    this.#step('rename')
    const inode = this.#names.get(from)
    if (inode === undefined) throw failure('ENOENT', 'rename')
    this.#names.set(to, inode)
    this.#names.delete(from)
  }

  mkdirSync(): void {
    this.#step('mkdir')
  }

  unlinkSync(path: string): void {
    this.#step('unlink')
    this.#names.delete(path)
  }

  readdirSync(path: string): readonly string[] {
    this.#step('readdir')
    const inside = [...this.#names.keys()].filter((name) => name.startsWith(`${path}/`))
    return inside.map((name) => name.slice(path.length + 1)).filter((name) => !name.includes('/'))
  }

  #existing(path: string): Descriptor {
    const inode = this.#names.get(path)
    if (inode !== undefined) return { inode }
    if (![...this.#names.keys()].some((name) => name.startsWith(`${path}/`))) throw failure('ENOENT', 'open')
    return { folder: path }
  }

  #made(path: string, flags: string | number): Inode {
    const inode = this.#names.get(path) ?? { cache: Buffer.alloc(0), durable: Buffer.alloc(0), dead: [] }
    this.#names.set(path, inode)
    if (typeof flags === 'number' && (flags & O_TRUNC) !== 0) {
      inode.cache = Buffer.alloc(0)
      inode.dead = []
    }
    return inode
  }

  #write(inode: Inode, bytes: Uint8Array): number {
    const isShort = this.#fault?.code === 'short' && this.#fault.at === this.#calls
    const half = Buffer.from(bytes.subarray(0, isShort ? bytes.length >> 1 : bytes.length))
    try {
      this.#step('write')
    } catch (error) {
      // A failed write-back: the bytes are in the cache, marked clean. A disk that takes none leaves none.
      if (this.#fault?.code === 'EIO') {
        inode.dead.push([inode.cache.length, inode.cache.length + half.length])
        inode.cache = Buffer.concat([inode.cache, half])
      }
      throw error
    }
    inode.cache = Buffer.concat([inode.cache, half])
    // Every file is opened with O_DSYNC.
    persist(inode)
    return half.length
  }

  /** Bytes that are dirty again come to disk with the next sync. One that fails leaves on disk what was there. */
  #overwrite(inode: Inode, bytes: Uint8Array, position: number): number {
    this.#step('pwrite')
    const end = position + bytes.length
    inode.cache = Buffer.concat([inode.cache.subarray(0, position), bytes, inode.cache.subarray(end)])
    inode.dead = inode.dead.flatMap(([from, to]) =>
      [[from, Math.min(to, position)] as const, [Math.max(from, end), to] as const].filter(([a, b]) => a < b),
    )
    return bytes.length
  }

  #sync(inode: Inode): void {
    try {
      this.#step('fsync')
    } catch (error) {
      inode.dead.push([inode.durable.length, inode.cache.length])
      throw error
    }
    persist(inode)
  }

  #inode(fd: number, call: string): Inode {
    const descriptor = this.#get(fd, call)
    if (descriptor === 'stranger' || !('inode' in descriptor)) throw failure('EBADF', call)
    return descriptor.inode
  }

  #get(fd: number, call: string): Descriptor {
    const descriptor = this.#descriptors.get(fd)
    if (descriptor === undefined) throw failure('EBADF', call)
    if (descriptor === 'stranger') this.foreign.push(`${call} on descriptor ${fd} at call ${this.#calls}`)
    return descriptor
  }

  /** Counts a call, and throws where one is to fail. */
  #step(call: string): void {
    this.#onCall(call)
    const now = this.#calls++
    const fault = this.#fault
    if (fault === null || fault.code === 'short' || now < fault.at || now >= fault.at + fault.calls) return
    throw failure(fault.code, call)
  }
}

const O_TRUNC = 0o1000

function persist(inode: Inode): void {
  inode.durable = Buffer.from(inode.cache)
  for (const [start, end] of inode.dead) inode.durable.fill(0, start, Math.min(end, inode.durable.length))
}

function failure(code: string, call: string): Error {
  return Object.assign(new Error(`${code}: ${call}`), { code })
}
