import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { BATCH_BYTES } from '../group-commit.ts'
import { nodeCalls, OwnedFile, type SystemCalls } from './owned-file.ts'

/**
 * An open file that only grows at its end; what was written is on disk when the write comes back. Every operation but `close` throws the
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
  /** Durable when it returns. */
  truncate(size: number): void
  /** May be called again; every other use throws from now on. Never throws. */
  close(): void
}

/** The few file operations that durability rests on. Tests inject faults here and record traces here. */
export interface Files {
  /** Opens for reading and appending; a missing file is made (mode 0600). The file and its name in the folder are durable. */
  openAppend(path: string): AppendHandle
  /** `rewrite`, without the handle. */
  replace(path: string, bytes: Uint8Array): void
  /**
   * Puts `bytes` under `path` as a whole (temporary file, fsync, rename, fsync of the folder) and returns the handle of the new file.
   * Throws `ReplaceUncertainError` when the old or the new file may be under `path`, any other error when it is the old one.
   */
  rewrite(path: string, bytes: Uint8Array): AppendHandle
  /** The whole file; null when there is none. */
  readWhole(path: string): Uint8Array | null
  exists(path: string): boolean
}

/** The rename was tried, and may survive a power cut or not. */
export class ReplaceUncertainError extends Error {}

/** Each write is a write and an fdatasync in one system call: one way to a thread and back instead of two. */
const APPEND_FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_DSYNC
const FOLDER_MODE = 0o700
/** Twice the bytes of a group commit: only the last commit can have failed, because nothing is written after one that did. */
const REWRITTEN_BYTES = 2 * BATCH_BYTES

/** The machine's file system, or another one behind the same system calls. */
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
          // A durable write covers its own bytes only. What a process that was killed left in the page cache must not come later.
          file.datasync()
        }
        // Always: the attempt before this one may have made or renamed the file and then failed here.
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
  }
  return files
}

/** The machine's file system. */
export const systemFiles: Files = filesOver(nodeCalls)

/** Tells "there is no such file" from every other trouble. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** The bytes of an open file from `from` to `end`. Throws when it is shorter. */
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
 * Writes the end of the file once more, in place. After a failed write the page cache may hold bytes that no sync brings to disk, because the
 * kernel marked them clean: a process that starts then would read and trust what the next power cut takes.
 */
function rewriteTail(path: string, size: number, calls: SystemCalls): void {
  // Without O_APPEND, which would write at the end whatever the position.
  using file = OwnedFile.open(path, 'r+', calls)
  const from = Math.max(0, size - REWRITTEN_BYTES)
  file.writeAll(readAll(file, size, from), from)
  file.datasync()
}

/** Open and synced; leaves nothing behind when it throws. */
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

/** A new or renamed entry survives power loss only once its folder was synced. */
function syncFolder(folder: string, calls: SystemCalls): void {
  using file = OwnedFile.open(folder, 'r', calls)
  file.sync()
}
