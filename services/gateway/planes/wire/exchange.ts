import type { IncomingHttpHeaders } from 'node:http'
import { ByteBuffer, type Clock } from '@plat/core'
import {
  type BodyAccount,
  type ClientRequest,
  dialFault,
  type HttpClient,
  isDialError,
  type Receiver,
  type Sending,
} from '@plat/http'
import { type Denial, deny, UpstreamError } from '../../call/index.ts'

/** Bytes of a response that are buffered for a slow reader before the upstream is paused. */
const PAUSE_AT_BYTES = 256 * 1024

/** Buffered chunks smaller than this are joined, since each has an overhead of about a hundred bytes. */
const SMALL_CHUNK_BYTES = 4096

/** Time limit for reading a whole body. */
export interface BodyDeadline {
  readonly clock: Clock
  /** Milliseconds from the start of reading. */
  readonly ms: number
}

export interface WholeBodyLimits {
  readonly maxBytes: number
  /** Counts each chunk. */
  readonly account: BodyAccount
  /** Absent: the caller enforces a time limit. */
  readonly deadline?: BodyDeadline
}

/** Why a body was not read: it exceeds its limit, or the limit of memory for calls. */
export type WholeBodyFault = 'too_large' | 'memory'

/**
 * Returns the denial for a response of `server` that was not read. Never `overloaded`, because clients repeat such calls, and the
 * upstream has already executed this one.
 */
export function wholeBodyDenial(server: string, fault: WholeBodyFault): Denial {
  const what = fault === 'memory' ? 'an answer for which there is no memory now' : 'an answer that is too large'
  return deny('upstream_error', `${server} sent ${what}`)
}

export interface UpstreamHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The gateway aborted a request, because of an error of the upstream or because the response is no longer needed. */
export class AbandonedError extends UpstreamError {
  constructor(why: string) {
    super(why)
    this.name = 'AbandonedError'
  }
}

/** One request to an upstream and its response, for a single reader. Implements the client's callbacks without a stream object. */
export class UpstreamExchange implements Receiver {
  readonly #sending: Sending
  #head: UpstreamHead | null = null
  #resolveHead: (head: UpstreamHead) => void = ignore
  #rejectHead: (error: Error) => void = ignore
  #chunks: Uint8Array[] = []
  /** Small chunks after the last of `#chunks`. */
  readonly #small = new ByteBuffer()
  #waiting = 0
  #paused = false
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null
  #discarding = false
  #over: () => void = ignore

  /** Sends the request. Throws if it cannot be sent. */
  constructor(client: HttpClient, request: ClientRequest) {
    this.#sending = client.send(request, this)
  }

  /** The response head; read once. Rejects with an UpstreamError if none was received, and with another error for a bug of the gateway. */
  get head(): Promise<UpstreamHead> {
    if (this.#head !== null) return Promise.resolve(this.#head)
    if (this.#error !== null) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
  }

  /** Returns a promise that resolves when bytes, the end or an error are available; null when they already are. */
  news(): Promise<void> | null {
    if (this.#chunks.length > 0 || this.#error !== null || this.#ended || this.#discarding) return null
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Returns the chunks received since the last call, at least one, or null at the end. Throws UpstreamError when the upstream failed. */
  take(): readonly Uint8Array[] | null {
    this.#joinSmall()
    const chunks = this.#chunks
    if (chunks.length === 0) {
      if (this.#error !== null) throw this.#error
      return null
    }
    this.#chunks = []
    this.#waiting = 0
    this.#resume()
    return chunks
  }

  /**
   * Reads the whole body. If a limit is exceeded, aborts the request. Rejects with `upstream_timeout` when the deadline passes.
   */
  readAll(limits: WholeBodyLimits): Uint8Array | WholeBodyFault | Promise<Uint8Array | WholeBodyFault> {
    // Most bodies arrive with their head, so that no wait is needed.
    const [only] = this.#chunks
    const isWhole =
      this.#ended &&
      this.#chunks.length === 1 &&
      this.#small.size === 0 &&
      only !== undefined &&
      only.length <= limits.maxBytes
    if (!isWhole)
      return limits.deadline === undefined ? this.#collect(limits) : this.#collectBy(limits.deadline, limits)
    this.#chunks = []
    return limits.account.retain(only.length) ? only : 'memory'
  }

  async #collectBy({ clock, ms }: BodyDeadline, limits: WholeBodyLimits): Promise<Uint8Array | WholeBodyFault> {
    const cancel = clock.after(ms, () => this.#sending.abort(tooSlow()))
    try {
      return await this.#collect(limits)
    } finally {
      cancel()
    }
  }

  async #collect({ maxBytes, account }: WholeBodyLimits): Promise<Uint8Array | WholeBodyFault> {
    const bytes = new ByteBuffer()
    for (;;) {
      await this.news()
      const chunks = this.take()
      if (chunks === null) break
      for (const chunk of chunks) {
        const fault =
          bytes.size + chunk.length > maxBytes ? 'too_large' : account.retain(chunk.length) ? null : 'memory'
        if (fault === null) bytes.append(chunk)
        else return this.#refuse(fault)
      }
    }
    return bytes.take()
  }

  #refuse(fault: WholeBodyFault): WholeBodyFault {
    this.abort(fault === 'memory' ? 'there is no room for its answer' : 'its answer is too large')
    return fault
  }

  /** Aborts the request and closes its connection. */
  abort(why: string): void {
    if (!this.#ended && this.#error === null) this.#sending.abort(new AbandonedError(why))
  }

  /** Discards the rest of the response. `over` is called when it has ended. */
  discard(over: () => void): void {
    if (this.#ended || this.#error !== null) {
      over()
      return
    }
    this.#over = over
    this.#discarding = true
    this.#chunks = []
    this.#small.take()
    this.#resume()
    this.#wakeReader()
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#head = { status, headers }
    this.#resolveHead(this.#head)
  }

  onData(chunk: Uint8Array): void {
    if (this.#discarding) return
    // Usually there is one chunk; `push` would allocate room for sixteen more.
    if (this.#chunks.length === 0) this.#chunks = [chunk]
    else if (chunk.length < SMALL_CHUNK_BYTES) this.#small.append(chunk)
    else {
      this.#joinSmall()
      this.#chunks.push(chunk)
    }
    this.#waiting += chunk.length
    if (this.#waiting > PAUSE_AT_BYTES && !this.#paused) {
      this.#paused = true
      this.#sending.pause()
    }
    this.#wakeReader()
  }

  onEnd(): void {
    this.#ended = true
    this.#over()
    this.#wakeReader()
  }

  onFailure(error: Error): void {
    const failed = error instanceof UpstreamError || !isDialError(error) ? error : transportError(error)
    this.#error = failed
    this.#rejectHead(failed)
    this.#over()
    this.#wakeReader()
  }

  #joinSmall(): void {
    if (this.#small.size > 0) this.#chunks.push(this.#small.take())
  }

  #resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#sending.resume()
  }

  #wakeReader(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}

function transportError(cause: Error): UpstreamError {
  if (dialFault(cause) === 'timeout') return tooSlow(cause)
  return new UpstreamError('the upstream ended before its response was complete', { cause })
}

function tooSlow(cause?: Error): UpstreamError {
  return new UpstreamError('the upstream did not respond in time', { code: 'upstream_timeout', cause })
}

function ignore(): void {}
