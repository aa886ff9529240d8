import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { type Bagged, ByteBuffer, type Clock, NOWHERE, SwapRemoveSet } from '@plat/core'
import { type BodyTaker, Request } from './request.ts'

/** A body that was not read: 413 `too_large`, 400 `chunks`, 408 `timeout`, 415 `encoding`, 503 `memory`; `aborted`: the client has left. */
export interface BodyFault {
  readonly kind: 'fault'
  readonly why: 'too_large' | 'chunks' | 'timeout' | 'aborted' | 'encoding' | 'memory'
}

/** Counts the bytes of bodies. */
export interface BodyAccount {
  /** Returns false when there is no room for so many more bytes: the body is refused. */
  retain(bytes: number): boolean
}

/** An `IncomingMessage`, or a stream whose headers come with the options. */
export type BodySource = Readable & { readonly headers?: IncomingHttpHeaders }

export interface ReadBodyOptions {
  /** A body of exactly this size is taken. */
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly clock: Clock
  /** For a source that carries none itself. */
  readonly headers?: IncomingHttpHeaders
  /** Counts each chunk before it is kept; its owner gives the bytes back. Absent: nothing is counted. */
  readonly account?: BodyAccount
}

/** Chunks that any body may have, however small they are. */
const MAX_SMALL_CHUNKS = 8192

/** Bytes that the chunks of a body must have on average beyond `MAX_SMALL_CHUNKS`: each costs a call of the parser. */
const MIN_AVERAGE_CHUNK_BYTES = 16

/**
 * Reads a whole body under its limits. A declared length that is too large is refused before a byte is read; a body that
 * arrived in one piece is handed out without a copy, and one that is incomplete holds at most twice its bytes, whatever its chunks. After
 * a fault the rest of the request is discarded.
 */
export function readBody(source: BodySource, options: ReadBodyOptions): Promise<Uint8Array | BodyFault> {
  const headers = source.headers ?? options.headers ?? {}
  const coding = headers['content-encoding']
  if (coding !== undefined && coding !== 'identity') return Promise.resolve(fault('encoding'))
  if (Number(headers['content-length'] ?? 0) > options.maxBytes) return Promise.resolve(fault('too_large'))
  if (source.destroyed) return Promise.resolve(fault('aborted'))
  return new Promise((resolve) => {
    const collector = new Collector(source, options, resolve)
    if (!(source instanceof Request && source.hand(collector))) follow(source, collector)
  })
}

/** Bytes that `joinedBody` collects before it hands them on. */
const JOINED_CHUNK_BYTES = 64 * 1024

/**
 * The same body in chunks of at least `JOINED_CHUNK_BYTES`, for a reader that keeps a list of them. It is destroyed with the error that
 * `refuse` makes when it comes in too many small chunks.
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
  /** Bytes that have come; Fastify compares them with its limit and with Content-Length. */
  receivedEncodedLength = 0

  constructor(source: BodySource, refuse: () => Error) {
    super()
    this.#source = source
    this.#refuse = refuse
    // Nobody may be reading when the client leaves.
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

  /** The source sends without being asked, within the limit that the reader sets. */
  override _read(): void {
    this.#hasReader = true
    if (this.#error !== null) this.destroy(this.#error)
  }

  /** An error that is emitted before somebody reads would be lost. */
  #fail(error: Error): void {
    this.#error ??= error
    if (this.#hasReader) this.destroy(this.#error)
  }
}

/** Has a body come in more chunks than its bytes justify? */
function isChoppy(chunks: number, bytes: number): boolean {
  return chunks > MAX_SMALL_CHUNKS && bytes < chunks * MIN_AVERAGE_CHUNK_BYTES
}

/** The listeners stay with the stream, which ends with them: an error after the answer was found must not crash the process. */
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
 * Bodies on their way in, under one timer. Nearly every body is here at once, and a timer of its own would be made to be cancelled:
 * this one runs to the earliest end that was ever asked for, and looks then who is late.
 */
class Arriving {
  readonly #clock: Clock
  readonly #bodies = new SwapRemoveSet<Collector>()
  #looksAt = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** When a body is late that may take `timeoutMs` from now on, by the clock's `monotonic`. */
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

/** By the clock that measures them. */
const arriving = new WeakMap<Clock, Arriving>()

function arrivingBy(clock: Clock): Arriving {
  const known = arriving.get(clock)
  if (known !== undefined) return known
  const made = new Arriving(clock)
  arriving.set(clock, made)
  return made
}

/** One body on its way in. Settles once, then lets the rest go by. */
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
