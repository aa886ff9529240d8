import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Bag, type Bagged, type Clock, NOWHERE } from '@plat/core'
import { type BodyTaker, Request } from './request.ts'

/** A body that was not read: 413 `too_large`, 408 `timeout`, 415 `encoding`; `aborted`: nobody is left to answer. */
export interface BodyFault {
  readonly kind: 'fault'
  readonly why: 'too_large' | 'timeout' | 'aborted' | 'encoding'
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
}

const EMPTY = new Uint8Array(0)

/**
 * Reads a whole body under its limits. A declared length that is too large is refused before a byte is read; a body that
 * arrived in one piece is handed out without a copy. After a fault the rest of the request is let go unread.
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
  readonly #bodies = new Bag<Collector>()
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
  readonly #resolve: (result: Uint8Array | BodyFault) => void
  readonly #arriving: Arriving
  /** By the clock's `monotonic`. */
  readonly dueAt: number
  place = NOWHERE
  #first: Uint8Array | null = null
  #rest: Uint8Array[] | null = null
  #size = 0
  #settled = false

  constructor(source: BodySource, options: ReadBodyOptions, resolve: (result: Uint8Array | BodyFault) => void) {
    this.#source = source
    this.#maxBytes = options.maxBytes
    this.#resolve = resolve
    this.#arriving = arrivingBy(options.clock)
    this.dueAt = this.#arriving.begin(this, options.timeoutMs)
  }

  data(chunk: Uint8Array): void {
    if (this.#settled) return
    this.#size += chunk.length
    if (this.#size > this.#maxBytes) this.#fail('too_large')
    else if (this.#first === null) this.#first = chunk
    else if (this.#rest === null) this.#rest = [this.#first, chunk]
    else this.#rest.push(chunk)
  }

  end(): void {
    this.#settle(this.#rest === null ? (this.#first ?? EMPTY) : Buffer.concat(this.#rest, this.#size))
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
    this.#first = null
    this.#rest = null
    this.#resolve(result)
  }
}
