import { createHash, type Hash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ByteBuffer } from '@plat/core'
import { OVERLOAD_RETRY_MS } from '@plat/process'
import { type Denial, deny, type Identity, isDenial, type RequestContext } from '../../../call/index.ts'
import { boundaryOf, MultipartError, type MultipartEvent, MultipartParser } from './parser.ts'
import { SpoolError, type SpoolFile, type UploadLimits } from './spool.ts'

/** A file of a request. */
export interface UploadedFile {
  /** Name of its part. */
  readonly part: string
  readonly filename: string
  readonly type: string
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** Its first bytes. */
  readonly head: Uint8Array
  /** Yields its bytes from the beginning. Throws once the call is over. */
  read(): AsyncIterable<Uint8Array>
}

/** A multipart request. */
export interface Multipart {
  /** In their order. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly files: readonly UploadedFile[]
}

/** Most parts of a request; OpenAI's API has at most 16 images. */
const MAX_PARTS = 64
/** Bytes of a file that say what it is. */
const HEAD_BYTES = 4096
/** Chunks allowed in any body, and the least average size beyond them: each chunk costs a turn. */
const MAX_SMALL_CHUNKS = 8192
const LEAST_CHUNK_BYTES = 16

/**
 * Reads a multipart body: its fields into memory, its files to the spool. What was read is deleted when the call is over. After a denial the
 * rest of the body is discarded.
 */
export async function readMultipart(
  arrival: RequestContext,
  identity: Identity,
  limits: UploadLimits,
): Promise<Multipart | Denial> {
  const refused = headRefusal(arrival, limits)
  if (refused !== null) return refused
  try {
    const file = await limits.spool.open(identity)
    return file === null ? noRoom() : await spooled(arrival, file, limits)
  } catch (error) {
    if (!(error instanceof SpoolError)) throw error
    limits.onSpoolFault(error)
    arrival.wire.body.resume()
    return deny('state_unavailable', 'uploads cannot be stored now')
  }
}

async function spooled(arrival: RequestContext, file: SpoolFile, limits: UploadLimits): Promise<Multipart | Denial> {
  const { wire } = arrival
  arrival.whenOver?.(() => file.close())
  const reader = new Reader(arrival, file, limits)
  const read = await reader.run(boundaryOf(wire.headers['content-type']) ?? '')
  if (isDenial(read)) {
    file.close()
    wire.body.resume()
  }
  return read
}

function headRefusal({ wire: { headers } }: RequestContext, { maxUploadBytes }: UploadLimits): Denial | null {
  if (boundaryOf(headers['content-type']) === null)
    return deny('unsupported_media_type', 'Content-Type must be multipart/form-data with a boundary')
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity')
    return deny('unsupported_media_type', 'Content-Encoding must be identity')
  return Number(headers['content-length'] ?? 0) > maxUploadBytes ? tooLarge(maxUploadBytes) : null
}

function tooLarge(bytes: number): Denial {
  return deny('body_too_large', `the body is larger than ${bytes} bytes (modelUploads.maxBytes)`)
}

function noRoom(): Denial {
  return deny('overloaded', 'uploads of this session or agent, or all uploads, hold too many bytes; call again', {
    retryAfterMs: OVERLOAD_RETRY_MS,
  })
}

type Field = { readonly name: string; readonly bytes: ByteBuffer }
type FilePart = Pick<UploadedFile, 'part' | 'filename' | 'type'> & {
  readonly start: number
  readonly hash: Hash
  readonly head: ByteBuffer
}

class Reader {
  readonly #arrival: RequestContext
  readonly #spooled: SpoolFile
  readonly #limits: UploadLimits
  readonly #fields: (readonly [string, string])[] = []
  readonly #files: UploadedFile[] = []
  #field: Field | null = null
  #file: FilePart | null = null
  #parts = 0
  #fieldBytes = 0

  constructor(arrival: RequestContext, file: SpoolFile, limits: UploadLimits) {
    this.#arrival = arrival
    this.#spooled = file
    this.#limits = limits
  }

  async run(boundary: string): Promise<Multipart | Denial> {
    const { clock, bodyReadTimeoutMs, maxUploadBytes } = this.#limits
    const parser = new MultipartParser(boundary)
    const dueAt = clock.monotonic() + bodyReadTimeoutMs
    let size = 0
    let count = 0
    const chunks = this.#arrival.wire.body.iterator({ destroyOnReturn: false })
    try {
      for (;;) {
        const next = await this.#inTime(chunks.next(), dueAt - clock.monotonic())
        if (next === 'late') return deny('request_timeout', `the body did not arrive within ${bodyReadTimeoutMs} ms`)
        if (next.done === true) break
        size += next.value.length
        if (size > maxUploadBytes) return tooLarge(maxUploadBytes)
        if (++count > MAX_SMALL_CHUNKS && size < count * LEAST_CHUNK_BYTES)
          return deny('invalid_request', 'the body comes in too many small chunks')
        for (const event of parser.push(next.value)) {
          const denial = await this.#take(event)
          if (denial !== null) return denial
        }
      }
      if (!parser.isComplete) return deny('invalid_request', 'the body ended too early')
      await this.#spooled.flush()
    } catch (error) {
      if (error instanceof SpoolError) throw error
      if (error instanceof MultipartError)
        return deny('invalid_request', `the multipart body is not valid: ${error.message}`)
      if (this.#arrival.signal.aborted || isAborted(this.#arrival.wire.body))
        return deny('invalid_request', 'the body ended too early')
      throw error
    }
    return { fields: this.#fields, files: this.#files }
  }

  async #inTime<T>(work: Promise<T>, ms: number): Promise<T | 'late'> {
    const late = Promise.withResolvers<'late'>()
    const cancel = this.#limits.clock.after(Math.max(0, ms), () => late.resolve('late'))
    try {
      return await Promise.race([work, late.promise])
    } finally {
      cancel()
    }
  }

  #take(event: MultipartEvent): null | Denial | Promise<Denial | null> {
    if (event.kind === 'data') return this.#data(event.bytes)
    const denial = this.#endPart()
    if (denial !== null || event.kind === 'end') return denial
    if (++this.#parts > MAX_PARTS) return deny('invalid_request', `the body has more than ${MAX_PARTS} parts`)
    const { name, filename, type } = event
    if (filename === null) this.#field = { name, bytes: new ByteBuffer() }
    else
      this.#file = {
        ...{ part: name, filename, type: type ?? 'application/octet-stream', start: this.#spooled.size },
        ...{ hash: createHash('sha256'), head: new ByteBuffer() },
      }
    return null
  }

  #data(bytes: Buffer): null | Denial | Promise<Denial | null> {
    const { maxBodyBytes } = this.#limits
    if (this.#field !== null) {
      this.#fieldBytes += bytes.length
      if (this.#fieldBytes > maxBodyBytes)
        return deny('body_too_large', `the fields of the body are larger than ${maxBodyBytes} bytes`)
      if (!this.#arrival.retain(bytes.length)) return noRoom()
      // A copy: the buffer also has bytes of the next parts.
      this.#field.bytes.append(Buffer.from(bytes))
      return null
    }
    const file = this.#file
    if (file === null) return null
    file.hash.update(bytes)
    if (file.head.size < HEAD_BYTES) file.head.append(Buffer.from(bytes.subarray(0, HEAD_BYTES - file.head.size)))
    return this.#spooled.append(bytes).then((hasRoom) => (hasRoom ? null : noRoom()))
  }

  #endPart(): Denial | null {
    const field = this.#field
    const file = this.#file
    this.#field = null
    this.#file = null
    if (field !== null) {
      const text = utf8(field.bytes.take())
      if (text === null) return deny('invalid_request', `the field ${field.name} is not UTF-8`)
      this.#fields.push([field.name, text])
    }
    if (file !== null) {
      const { part, filename, type, start, hash, head } = file
      const size = this.#spooled.size - start
      const read = () => this.#spooled.read(start, size)
      this.#files.push({ part, filename, type, size, sha256: hash.digest('hex'), head: head.take(), read })
    }
    return null
  }
}

function isAborted(body: Readable): boolean {
  return body.destroyed || body.errored !== null
}

function utf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}
