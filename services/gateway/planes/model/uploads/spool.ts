import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ByteBuffer, type Ids, type SharedPool } from '@plat/core'
import { callerOf, callingAgentOf, type Identity } from '../../../call/index.ts'
import type { BodyLimits } from '../../wire/message.ts'

/** Limits of requests with files. */
export interface UploadLimits extends BodyLimits {
  readonly spool: Pick<Spool, 'open'>
  /** docs/spec/gateway.md: `modelUploads.maxBytes`. */
  readonly maxUploadBytes: number
  /** Called when the spool cannot be written. */
  readonly onSpoolFault: (error: SpoolError) => void
}

/** Bytes that are written, and read, at once. */
const CHUNK_BYTES = 64 * 1024
/** Least count of a file, so that the limit of bytes is one of open files as well. */
const LEAST_BYTES = 256 * 1024

/** The spool cannot be written: its folder is missing or read-only, or the disk is full. */
export class SpoolError extends Error {
  constructor(cause: unknown) {
    super('uploads cannot be written to the disk', { cause })
    this.name = 'SpoolError'
  }
}

/** Files of uploads while their calls last. They have no name on the disk, so that nothing is left of them after a crash. */
export class Spool {
  readonly #dir: string
  readonly #pool: SharedPool
  readonly #ids: Pick<Ids, 'uuid'>

  /** `dir` is empty for the folder of temporary files. */
  constructor({
    dir,
    pool,
    ids,
  }: { readonly dir: string; readonly pool: SharedPool; readonly ids: Pick<Ids, 'uuid'> }) {
    this.#dir = dir === '' ? tmpdir() : dir
    this.#pool = pool
    this.#ids = ids
  }

  /** Returns an empty file; null: the caller's share, or the whole spool, is used up. Rejects with SpoolError when it cannot be created. */
  async open(identity: Identity): Promise<SpoolFile | null> {
    const caller = [callingAgentOf(identity), callerOf(identity)]
    const take = (bytes: number) => this.#pool.acquire(caller, bytes) === null
    if (!take(LEAST_BYTES)) return null
    const release = (bytes: number) => this.#pool.release(caller, bytes)
    try {
      const path = join(this.#dir, `plat-upload-${this.#ids.uuid()}`)
      const handle = await open(path, 'wx+', 0o600)
      try {
        await unlink(path)
      } catch (error) {
        await handle.close()
        throw error
      }
      return new SpoolFile(handle, { take, release })
    } catch (error) {
      release(LEAST_BYTES)
      throw new SpoolError(error)
    }
  }
}

/** The bytes of one upload on the disk. */
export class SpoolFile {
  readonly #handle: FileHandle
  readonly #take: (bytes: number) => boolean
  readonly #release: (bytes: number) => void
  readonly #unwritten = new ByteBuffer()
  #counted = LEAST_BYTES
  #written = 0
  /** The operation that uses the handle. */
  #busy: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(
    handle: FileHandle,
    { take, release }: { readonly take: (bytes: number) => boolean; readonly release: (bytes: number) => void },
  ) {
    this.#handle = handle
    this.#take = take
    this.#release = release
  }

  get size(): number {
    return this.#written + this.#unwritten.size
  }

  /** Resolves to false if there is no room. Rejects with SpoolError when it cannot be written. */
  async append(bytes: Uint8Array): Promise<boolean> {
    const more = this.size + bytes.length - this.#counted
    if (more > 0) {
      if (this.#closed || !this.#take(more)) return false
      this.#counted += more
    }
    this.#unwritten.append(bytes)
    if (this.#unwritten.size >= CHUNK_BYTES) await this.flush()
    return true
  }

  /** Writes what was appended. Rejects with SpoolError when that fails. */
  async flush(): Promise<void> {
    if (this.#unwritten.size === 0) return
    const bytes = this.#unwritten.take()
    const at = this.#written
    this.#written += bytes.length
    for (let done = 0; done < bytes.length; ) {
      const write = this.#use((handle) => handle.write(bytes, done, bytes.length - done, at + done))
      const { bytesWritten } = await write.catch((error: unknown) => {
        throw this.#closed ? error : new SpoolError(error)
      })
      done += bytesWritten
    }
  }

  /** Yields a part of the file. Throws if it is shorter, or closed. */
  async *read(start: number, size: number): AsyncGenerator<Uint8Array> {
    for (let at = start; at < start + size; ) {
      const length = Math.min(CHUNK_BYTES, start + size - at)
      const { bytesRead, buffer } = await this.#use((handle) => handle.read(Buffer.allocUnsafe(length), 0, length, at))
      if (bytesRead === 0) throw new RangeError('an upload is shorter than it was')
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }

  /** Deletes it, once a pending operation has ended. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#release(this.#counted)
    this.#busy.finally(() => this.#handle.close()).catch(() => {})
  }

  #use<T>(work: (handle: FileHandle) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the upload is over'))
    const done = work(this.#handle)
    this.#busy = done.catch(() => {})
    return done
  }
}
