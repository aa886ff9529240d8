import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { BATCH_BYTES } from '../group-commit.ts'
import { nodeCalls, OwnedFile, type SystemCalls } from './owned-file.ts'

/**
 * An append-only open file; a write is durable when it returns. Every operation except `close` throws the system's error. After a failed write the
 * handle must not be used again: the kernel drops the failed pages.
 */
export interface AppendHandle {
  /** Returns the size in bytes. */
  size(): number
  /** Reads into `target` from `position`. Returns the number of bytes read, 0 at the end. */
  read(target: Uint8Array, position: number): number
  /** Appends. Returns the number of bytes written, which may be fewer than given. */
  write(bytes: Uint8Array): number
  /** Like `write`, off the event loop: `bytes` must not change until `done` is called. */
  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void
  /** Durable when it returns. */
  truncate(size: number): void
  /** Idempotent, never throws; every later use of the handle throws. */
  close(): void
}

/** An open file that is only read. */
export interface ReadHandle extends Pick<AppendHandle, 'size' | 'read' | 'close'> {}

/** The file operations on which durability depends. Tests inject faults and record traces here. */
export interface Files {
  /** Opens for reading and appending; creates a missing file (mode 0600). The file and its folder entry are durable. */
  openAppend(path: string): AppendHandle
  /** Like `rewrite`, without the handle. */
  replace(path: string, bytes: Uint8Array): void
  /**
   * Replaces the file at `path` by `bytes` (temporary file, fsync, rename, fsync of the folder) and returns the handle of the new file. Throws
   * ReplaceUncertainError when either file may be at `path`, any other error when it is the old one.
   */
  rewrite(path: string, bytes: Uint8Array): AppendHandle
  /** Returns the whole file, or null when it does not exist. */
  readWhole(path: string): Uint8Array | null
  exists(path: string): boolean
  openRead(path: string): ReadHandle
  /** Returns the names in a folder; none when it does not exist. */
  list(folder: string): readonly string[]
  /** Renames a file within its folder. Durable when it returns; when it throws, the file may have either name. Caller must know that `to` is free. */
  rename(from: string, to: string): void
  /** Deletes a file if it exists. Durable when it returns. */
  remove(path: string): void
}

/** The rename was attempted and may or may not survive a power failure. */
export class ReplaceUncertainError extends Error {}

/** O_DSYNC makes each write a write and an fdatasync in one system call, with one thread pool round trip instead of two. */
const APPEND_FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_DSYNC
const FOLDER_MODE = 0o700
/** Twice the maximum of a group commit: only the last commit can have failed, because nothing is written after a failure. */
const REWRITTEN_BYTES = 2 * BATCH_BYTES

/** Returns a file system on the given system calls. */
export function filesOver(calls: SystemCalls): Files {
  const files: Files = {
    openAppend(path) {
      const folder = dirname(path)
      calls.mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
      const file = OwnedFile.open(path, APPEND_FLAGS, calls)
      try {
        const size = file.size()
        if (size > 0) {
          rewriteTail(path, size, calls)
          // A durable write covers only its own bytes. Bytes that a killed process left in the page cache must be durable before them.
          file.datasync()
        }
        // Always: an earlier attempt may have created or renamed the file and failed here.
        syncFolder(folder, calls)
        return new SystemAppendHandle(file)
      } catch (error) {
        file.close()
        throw error
      }
    },
    replace: (path, bytes) => files.rewrite(path, bytes).close(),
    rewrite(path, bytes) {
      const temporary = `${path}.tmp`
      const file = writeTemporary(temporary, bytes, calls)
      try {
        calls.renameSync(temporary, path)
        syncFolder(dirname(path), calls)
        return new SystemAppendHandle(file)
      } catch (error) {
        file.close()
        throw new ReplaceUncertainError(`${path} may not have been replaced: ${String(error)}`, { cause: error })
      }
    },
    readWhole(path) {
      try {
        using file = OwnedFile.open(path, 'r', calls)
        return readAll(file, file.size())
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    },
    exists(path) {
      try {
        calls.statSync(path)
        return true
      } catch (error) {
        if (isMissing(error)) return false
        throw error
      }
    },
    openRead: (path) => OwnedFile.open(path, 'r', calls),
    ...namesOver(calls),
  }
  return files
}

function namesOver(calls: SystemCalls): Pick<Files, 'list' | 'rename' | 'remove'> {
  return {
    list(folder) {
      try {
        return calls.readdirSync(folder)
      } catch (error) {
        if (isMissing(error)) return []
        throw error
      }
    },
    rename(from, to) {
      calls.renameSync(from, to)
      syncFolder(dirname(to), calls)
    },
    remove(path) {
      try {
        calls.unlinkSync(path)
      } catch (error) {
        if (!isMissing(error)) throw error
      }
      syncFolder(dirname(path), calls)
    },
  }
}

export const systemFiles: Files = filesOver(nodeCalls)

/** Returns whether the error means that the file does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** Reads the bytes of an open file from `from` to `end`. Throws when the file is shorter. */
export function readAll(file: Pick<AppendHandle, 'read'>, end: number, from = 0): Buffer {
  const bytes = Buffer.alloc(end - from)
  for (let got = 0; got < bytes.length; ) {
    const count = file.read(bytes.subarray(got), from + got)
    if (count === 0) throw new Error(`the file ended at byte ${from + got} of ${end} while it was read`)
    got += count
  }
  return bytes
}

/**
 * Rewrites the end of the file in place. After a failed write the page cache may hold bytes that no sync writes to disk, because the kernel marked
 * them clean: a process that starts then would trust bytes that the next power failure loses.
 */
function rewriteTail(path: string, size: number, calls: SystemCalls): void {
  // Without O_APPEND, which would ignore the position.
  using file = OwnedFile.open(path, 'r+', calls)
  const from = Math.max(0, size - REWRITTEN_BYTES)
  file.writeAll(readAll(file, size, from), from)
  file.datasync()
}

/** Returns the file open and synced; removes it when it throws. */
function writeTemporary(path: string, bytes: Uint8Array, calls: SystemCalls): OwnedFile {
  const file = OwnedFile.open(path, APPEND_FLAGS | constants.O_TRUNC, calls)
  try {
    file.writeAll(bytes)
    file.sync()
    return file
  } catch (error) {
    file.close()
    try {
      calls.unlinkSync(path)
    } catch {
      // The next one truncates it.
    }
    throw error
  }
}

class SystemAppendHandle implements AppendHandle {
  readonly #file: OwnedFile

  constructor(file: OwnedFile) {
    this.#file = file
  }

  size(): number {
    return this.#file.size()
  }

  read(target: Uint8Array, position: number): number {
    return this.#file.read(target, position)
  }

  write(bytes: Uint8Array): number {
    return this.#file.write(bytes)
  }

  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void {
    this.#file.append(bytes, done)
  }

  truncate(size: number): void {
    this.#file.truncate(size)
    this.#file.sync()
  }

  close(): void {
    this.#file.close()
  }
}

/** A new or renamed entry survives a power failure only after its folder was synced. */
function syncFolder(folder: string, calls: SystemCalls): void {
  using file = OwnedFile.open(folder, 'r', calls)
  file.sync()
}
