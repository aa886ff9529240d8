import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  write,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

/**
 * An open file that only grows at its end; what was written is on disk when the write comes back. Every operation throws the
 * system's error. After a failed write the handle must never be used again: the kernel forgets what failed.
 */
export interface AppendHandle {
  /** Bytes. */
  size(): number
  /** Reads into the whole of `target` from `position`; answers the bytes read, 0 at the end. */
  read(target: Uint8Array, position: number): number
  /** Writes at the end; answers the bytes written, which may be fewer than given. */
  write(bytes: Uint8Array): number
  /** `write`, off the event loop: the bytes must stay as they are until it is done. */
  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void
  truncate(size: number): void
  close(): void
}

/** The few file operations that durability rests on. Tests inject faults and record traces here. */
export interface Files {
  /** Opens for reading and appending; a missing file is made (mode 0600) and its folder is synced. */
  openAppend(path: string): AppendHandle
  /** Puts `bytes` under `path` as a whole: temporary file, fsync, rename, fsync of the folder. */
  replace(path: string, bytes: Uint8Array): void
  /** The whole file; null when there is none. */
  readWhole(path: string): Uint8Array | null
  exists(path: string): boolean
}

/** Each write is a write and an fdatasync in one system call: one way to a thread and back instead of two. */
const APPEND_FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_DSYNC
/** Only the owner reads what agents did. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** The machine's file system. */
export const systemFiles: Files = {
  openAppend(path) {
    const folder = dirname(path)
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    const file = openSync(path, APPEND_FLAGS, FILE_MODE)
    if (fstatSync(file).size === 0) syncFolder(folder)
    // A durable write covers its own bytes only. What a process that was killed left in the page cache must not come later.
    else fdatasyncSync(file)
    return new SystemAppendHandle(file)
  },
  replace(path, bytes) {
    const temporary = `${path}.tmp`
    const file = openSync(temporary, 'w', FILE_MODE)
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    syncFolder(dirname(path))
  },
  readWhole(path) {
    try {
      return readFileSync(path)
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  },
  exists: (path) => existsSync(path),
}

/** Tells "there is no such file" from every other trouble. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

class SystemAppendHandle implements AppendHandle {
  readonly #file: number

  constructor(file: number) {
    this.#file = file
  }

  size(): number {
    return fstatSync(this.#file).size
  }

  read(target: Uint8Array, position: number): number {
    return readSync(this.#file, target, 0, target.length, position)
  }

  write(bytes: Uint8Array): number {
    return writeSync(this.#file, bytes)
  }

  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void {
    write(this.#file, bytes, done)
  }

  truncate(size: number): void {
    ftruncateSync(this.#file, size)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** A new or renamed entry survives power loss only once its folder was synced. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
