import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  write,
  writeSync,
} from 'node:fs'

/** The system calls on which durable files depend. Tests inject faults here; other code opens an `OwnedFile`. */
export interface SystemCalls {
  openSync(path: string, flags: string | number, mode: number): number
  closeSync(fd: number): void
  fstatSync(fd: number): { readonly size: number }
  statSync(path: string): { readonly size: number }
  readSync(fd: number, target: Uint8Array, at: { readonly position: number }): number
  writeSync(fd: number, bytes: Uint8Array, at: { readonly position: number | null }): number
  write(fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void
  fdatasyncSync(fd: number): void
  fsyncSync(fd: number): void
  ftruncateSync(fd: number, size: number): void
  renameSync(from: string, to: string): void
  mkdirSync(path: string, options: { readonly recursive: true; readonly mode: number }): unknown
  unlinkSync(path: string): void
  readdirSync(path: string): readonly string[]
}

export const nodeCalls: SystemCalls = {
  openSync,
  closeSync,
  fstatSync,
  statSync,
  readSync,
  // Node's types lack the signature with options.
  writeSync: (fd, bytes, { position }) => writeSync(fd, bytes, 0, bytes.length, position),
  write,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  renameSync,
  mkdirSync,
  unlinkSync,
  readdirSync: (path) => readdirSync(path),
}

/** Readable by the owner only: the files contain the activity of agents. */
export const FILE_MODE = 0o600

/** A file was used after it was closed. */
export class FileClosedError extends Error {}

/**
 * The single owner of a file descriptor. The kernel reuses the number for the next file or socket once it is closed. So the number never leaves this
 * class, it is closed exactly once, and every use after `close` throws FileClosedError.
 */
export class OwnedFile {
  readonly #path: string
  readonly #calls: SystemCalls
  #fd: number | null
  /** Number of writes on the thread pool; the descriptor stays open until they return. */
  #writing = 0
  #isClosed = false

  private constructor(path: string, fd: number, calls: SystemCalls) {
    this.#path = path
    this.#fd = fd
    this.#calls = calls
  }

  /** Throws the system's error. */
  static open(path: string, flags: string | number, calls: SystemCalls = nodeCalls): OwnedFile {
    return new OwnedFile(path, calls.openSync(path, flags, FILE_MODE), calls)
  }

  /** Returns the size in bytes. */
  size(): number {
    return this.#calls.fstatSync(this.#descriptor()).size
  }

  /** Reads into `target` from `position`. Returns the number of bytes read, 0 at the end. */
  read(target: Uint8Array, position: number): number {
    return this.#calls.readSync(this.#descriptor(), target, { position })
  }

  /** Returns the number of bytes written, which may be fewer than given. */
  write(bytes: Uint8Array): number {
    return this.#calls.writeSync(this.#descriptor(), bytes, { position: null })
  }

  /** Writes at `position`, or as the flags of the file say. */
  writeAll(bytes: Uint8Array, position: number | null = null): void {
    for (let at = 0; at < bytes.length; ) {
      const place = { position: position === null ? null : position + at }
      at += this.#calls.writeSync(this.#descriptor(), bytes.subarray(at), place)
    }
  }

  /** Like `write`, off the event loop; `bytes` must not change until `done` is called. */
  append(bytes: Uint8Array, done: (fault: Error | null, written: number) => void): void {
    this.#calls.write(this.#descriptor(), bytes, (error, written) => {
      this.#writing--
      if (this.#isClosed) this.#release()
      done(error, written)
    })
    this.#writing++
  }

  truncate(size: number): void {
    this.#calls.ftruncateSync(this.#descriptor(), size)
  }

  sync(): void {
    this.#calls.fsyncSync(this.#descriptor())
  }

  datasync(): void {
    this.#calls.fdatasyncSync(this.#descriptor())
  }

  /** Idempotent, never throws: durable data was synced before, and the kernel frees the number even when it reports an error. */
  close(): void {
    this.#isClosed = true
    this.#release()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #descriptor(): number {
    if (this.#fd === null || this.#isClosed) throw new FileClosedError(`${this.#path} is closed`)
    return this.#fd
  }

  #release(): void {
    const fd = this.#fd
    if (fd === null || this.#writing > 0) return
    this.#fd = null
    try {
      this.#calls.closeSync(fd)
    } catch {
      // POSIX leaves the state of the descriptor undefined after an error, Linux has freed it: closing it again could close another file.
    }
  }
}
