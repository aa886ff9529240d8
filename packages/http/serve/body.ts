import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Clock } from '@plat/core'

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
  return new Promise((resolve) => new Collector(source, options, resolve))
}

function fault(why: BodyFault['why']): BodyFault {
  return { kind: 'fault', why }
}

/**
 * One body on its way in. Settles once, then lets the rest go by. Its listeners stay with the stream, which ends with them: an error
 * after the answer was found must not crash the process.
 */
class Collector {
  readonly #source: BodySource
  readonly #maxBytes: number
  readonly #resolve: (result: Uint8Array | BodyFault) => void
  readonly #cancel: () => void
  #first: Uint8Array | null = null
  #rest: Uint8Array[] | null = null
  #size = 0
  #settled = false

  constructor(source: BodySource, options: ReadBodyOptions, resolve: (result: Uint8Array | BodyFault) => void) {
    this.#source = source
    this.#maxBytes = options.maxBytes
    this.#resolve = resolve
    this.#cancel = options.clock.after(options.timeoutMs, () => this.#settle(fault('timeout')))
    source.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onGone).on('error', this.#onGone)
  }

  readonly #onData = (chunk: Uint8Array): void => {
    if (this.#settled) return
    this.#size += chunk.length
    if (this.#size > this.#maxBytes) this.#settle(fault('too_large'))
    else if (this.#first === null) this.#first = chunk
    else if (this.#rest === null) this.#rest = [this.#first, chunk]
    else this.#rest.push(chunk)
  }

  readonly #onEnd = (): void => {
    this.#settle(this.#rest === null ? (this.#first ?? EMPTY) : Buffer.concat(this.#rest, this.#size))
  }

  readonly #onGone = (): void => this.#settle(fault('aborted'))

  #settle(result: Uint8Array | BodyFault): void {
    if (this.#settled) return
    this.#settled = true
    this.#cancel()
    this.#first = null
    this.#rest = null
    if (this.#source.readable) this.#source.resume()
    this.#resolve(result)
  }
}
