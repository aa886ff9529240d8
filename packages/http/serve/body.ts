import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { type Bagged, ByteBuffer, type Clock, NOWHERE, SwapRemoveSet } from '@plat/core'
import { type BodyTaker, Request } from './request.ts'

/** Reason why a body was not read: 413 `too_large`, 400 `chunks`, 408 `timeout`, 415 `encoding`, 503 `memory`; `aborted`: the client disconnected. */
export interface BodyFault {
  readonly kind: 'fault'
  readonly why: 'too_large' | 'chunks' | 'timeout' | 'aborted' | 'encoding' | 'memory'
}

export interface BodyAccount {
  /** Returns false when the budget has no room for `bytes` more: the body is refused. */
  retain(bytes: number): boolean
}

/** An `IncomingMessage`, or a stream whose headers are passed in the options. */
export type BodySource = Readable & { readonly headers?: IncomingHttpHeaders }

export interface ReadBodyOptions {
  /** Inclusive. */
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly clock: Clock
  /** Headers, for a source without any. */
  readonly headers?: IncomingHttpHeaders
  /** Charged with each chunk before it is kept; the owner of the body releases the bytes. Absent: not counted. */
  readonly account?: BodyAccount
}

/** Number of chunks allowed in any body, however small they are. */
const MAX_SMALL_CHUNKS = 8192

/** Minimum average size of the chunks beyond `MAX_SMALL_CHUNKS`: each chunk costs a parser call. */
const MIN_AVERAGE_CHUNK_BYTES = 16

/**
 * Reads a whole body under the limits. A declared length above the limit is refused before a byte is read. A body that arrived in one piece is
 * returned without a copy; an incomplete one holds at most twice its bytes. After a fault the rest of the request is discarded.
 */
export function readBody(source: BodySource, options: ReadBodyOptions): Promise<Uint8Array | BodyFault> {
  return new Promise((resolve) => collectBody(source, options, resolve))
}

/** Reads a body as `readBody` does, without a promise. `onResult` is called once, at once for a body that is refused by its head. */
export function collectBody(
  source: BodySource,
  options: ReadBodyOptions,
  onResult: (result: Uint8Array | BodyFault) => void,
): void {
  const refused = headRefusal(source, options)
  if (refused !== null) {
    onResult(fault(refused))
    return
  }
  const collector = new Collector(source, options, onResult)
  if (!(source instanceof Request && source.hand(collector))) follow(source, collector)
}

/** Returns why no byte of a body is read, or null. */
function headRefusal(source: BodySource, options: ReadBodyOptions): BodyFault['why'] | null {
  const headers = source.headers ?? options.headers ?? {}
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return 'encoding'
  if (Number(headers['content-length'] ?? 0) > options.maxBytes) return 'too_large'
  return source.destroyed ? 'aborted' : null
}

/** Bytes that `joinedBody` collects before it passes them on. */
const JOINED_CHUNK_BYTES = 64 * 1024

/**
 * Returns the same body in chunks of at least `JOINED_CHUNK_BYTES`, for a reader that keeps a list of chunks. The stream is destroyed with
 * `refuse()` when the body has too many small chunks.
 */
export function joinedBody(source: BodySource, refuse: () => Error): Readable {
  const body = new JoinedBody(source, refuse)
  if (!(source instanceof Request && source.hand(body))) follow(source, body)
  return body
}

class JoinedBody extends Readable implements BodyTaker {
  readonly #source: BodySource
  readonly #refuse: () => Error
  readonly #bytes = new ByteBuffer()
  #chunks = 0
  #hasReader = false
  #error: Error | null = null
  /** Bytes received; Fastify compares them with its limit and with Content-Length. */
  receivedEncodedLength = 0

  constructor(source: BodySource, refuse: () => Error) {
    super()
    this.#source = source
    this.#refuse = refuse
    // Without a listener the error would be uncaught when the client disconnects before anyone reads.
    this.on('error', () => {})
  }

  data(chunk: Uint8Array): void {
    if (this.#error !== null) return
    this.receivedEncodedLength += chunk.length
    if (isChoppy(++this.#chunks, this.receivedEncodedLength)) {
      this.#fail(this.#refuse())
      if (this.#source.readable) this.#source.resume()
      return
    }
    this.#bytes.append(chunk)
    if (this.#bytes.size >= JOINED_CHUNK_BYTES) this.push(this.#bytes.take())
  }

  end(): void {
    if (this.#bytes.size > 0) this.push(this.#bytes.take())
    this.push(null)
  }

  gone(): void {
    this.#fail(new Error('The request was aborted.'))
  }

  /** The source pushes data, within the high-water mark of the reader. */
  override _read(): void {
    this.#hasReader = true
    if (this.#error !== null) this.destroy(this.#error)
  }

  /** Delays the error until someone reads: an error emitted earlier would be lost. */
  #fail(error: Error): void {
    this.#error ??= error
    if (this.#hasReader) this.destroy(this.#error)
  }
}

/** Returns true when a body has more chunks than its size justifies. */
function isChoppy(chunks: number, bytes: number): boolean {
  return chunks > MAX_SMALL_CHUNKS && bytes < chunks * MIN_AVERAGE_CHUNK_BYTES
}

/** The listeners stay until the stream ends: a late error must not crash the process. */
function follow(source: BodySource, taker: BodyTaker): void {
  const gone = () => taker.gone()
  source.on('data', (chunk: Uint8Array) => taker.data(chunk))
  source
    .on('end', () => taker.end())
    .on('close', gone)
    .on('error', gone)
}

function fault(why: BodyFault['why']): BodyFault {
  return { kind: 'fault', why }
}

/**
 * Bodies being received, under one shared timer. Most bodies have already arrived, so a timer for each would nearly always be created to be
 * cancelled: this one fires at the earliest known deadline and then checks which bodies are late.
 */
class Arriving {
  readonly #clock: Clock
  readonly #bodies = new SwapRemoveSet<Collector>()
  #looksAt = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns the deadline of a body that may take `timeoutMs` from now, by the clock's `monotonic`. */
  begin(body: Collector, timeoutMs: number): number {
    this.#bodies.add(body)
    const dueAt = this.#clock.monotonic() + timeoutMs
    if (dueAt < this.#looksAt) this.#lookAt(dueAt, timeoutMs)
    return dueAt
  }

  end(body: Collector): void {
    this.#bodies.delete(body)
  }

  #lookAt(at: number, inMs: number): void {
    this.#cancel()
    this.#looksAt = at
    this.#cancel = this.#clock.after(inMs, () => this.#look())
  }

  #look(): void {
    const now = this.#clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const body of this.#bodies) {
      if (body.dueAt <= now) body.late()
      else next = Math.min(next, body.dueAt)
    }
    this.#looksAt = Number.POSITIVE_INFINITY
    if (next !== Number.POSITIVE_INFINITY) this.#lookAt(next, next - now)
  }
}

/** One instance for each clock. */
const arriving = new WeakMap<Clock, Arriving>()

function arrivingBy(clock: Clock): Arriving {
  const known = arriving.get(clock)
  if (known !== undefined) return known
  const made = new Arriving(clock)
  arriving.set(clock, made)
  return made
}

/** One body being received. Settles once and ignores later events. */
class Collector implements BodyTaker, Bagged {
  readonly #source: BodySource
  readonly #maxBytes: number
  readonly #account: BodyAccount | undefined
  readonly #resolve: (result: Uint8Array | BodyFault) => void
  readonly #arriving: Arriving
  /** By the clock's `monotonic`. */
  readonly dueAt: number
  place = NOWHERE
  readonly #bytes = new ByteBuffer()
  #chunks = 0
  #settled = false

  constructor(source: BodySource, options: ReadBodyOptions, resolve: (result: Uint8Array | BodyFault) => void) {
    this.#source = source
    this.#maxBytes = options.maxBytes
    this.#account = options.account
    this.#resolve = resolve
    this.#arriving = arrivingBy(options.clock)
    this.dueAt = this.#arriving.begin(this, options.timeoutMs)
  }

  data(chunk: Uint8Array): void {
    if (this.#settled) return
    const size = this.#bytes.size + chunk.length
    if (size > this.#maxBytes) this.#fail('too_large')
    else if (isChoppy(++this.#chunks, size)) this.#fail('chunks')
    else if (this.#account?.retain(chunk.length) === false) this.#fail('memory')
    else this.#bytes.append(chunk)
  }

  end(): void {
    this.#settle(this.#bytes.take())
  }

  late(): void {
    this.#fail('timeout')
  }

  gone(): void {
    this.#fail('aborted')
  }

  #fail(why: BodyFault['why']): void {
    if (this.#settled) return
    this.#settle(fault(why))
    if (this.#source.readable) this.#source.resume()
  }

  #settle(result: Uint8Array | BodyFault): void {
    if (this.#settled) return
    this.#settled = true
    this.#arriving.end(this)
    this.#bytes.take()
    this.#resolve(result)
  }
}
