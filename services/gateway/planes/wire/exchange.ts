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

/** Bytes of an answer that may wait for a slow reader before the upstream is paused. */
const PAUSE_AT_BYTES = 256 * 1024

/** Chunks below this size that wait behind another are joined: each costs about a hundred bytes beside its own. */
const SMALL_CHUNK_BYTES = 4096

/** When a whole body must have been read. */
export interface BodyDeadline {
  readonly clock: Clock
  /** Milliseconds from the call that reads it. */
  readonly ms: number
}

/** The limits of a body that is read as a whole. */
export interface WholeBodyLimits {
  readonly maxBytes: number
  /** Counts each chunk. */
  readonly account: BodyAccount
  /** Absent: its reader watches the time. */
  readonly deadline?: BodyDeadline
}

/** Why a whole body was not read: it is larger than its limit, or there is no room for it in memory. */
export type WholeBodyFault = 'too_large' | 'memory'

/**
 * The denial for a response of `server` that was not read. It is never `overloaded`: clients repeat such a call, and the upstream has
 * executed this one.
 */
export function wholeBodyDenial(server: string, fault: WholeBodyFault): Denial {
  const what = fault === 'memory' ? 'an answer for which there is no memory now' : 'an answer that is too large'
  return deny('upstream_error', `${server} sent ${what}`)
}

export interface UpstreamHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The gateway aborted a request because of what the upstream did, or because nobody needs the response. */
export class AbandonedError extends UpstreamError {
  constructor(why: string) {
    super(why)
    this.name = 'AbandonedError'
  }
}

/** One request to an upstream and its answer, straight on the client's callbacks: no stream object stands in between. One reader. */
export class UpstreamExchange implements Receiver {
  readonly #sending: Sending
  #head: UpstreamHead | null = null
  #resolveHead: (head: UpstreamHead) => void = ignore
  #rejectHead: (error: Error) => void = ignore
  #chunks: Uint8Array[] = []
  /** Small chunks behind the last of `#chunks`. */
  readonly #small = new ByteBuffer()
  #waiting = 0
  #paused = false
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null
  #discarding = false
  #over: () => void = ignore

  /** Throws on a request that cannot be sent. */
  constructor(client: HttpClient, request: ClientRequest) {
    this.#sending = client.send(request, this)
  }

  /** Read once. Rejects with an `UpstreamError` when no head came; with any other error for a bug of the gateway. */
  get head(): Promise<UpstreamHead> {
    if (this.#head !== null) return Promise.resolve(this.#head)
    if (this.#error !== null) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
  }

  /** Waits until there is something to take: bytes, the end, or the death of the upstream. Null: there is. */
  news(): Promise<void> | null {
    if (this.#chunks.length > 0 || this.#error !== null || this.#ended || this.#discarding) return null
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Everything that has come since it was last asked, at least one chunk; null at the end. Throws an `UpstreamError` when the upstream died. */
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
   * Reads the whole body; after a fault the rest of it is aborted. With a deadline, a body that is not complete by then fails with
   * `upstream_timeout`.
   */
  readAll(limits: WholeBodyLimits): Uint8Array | WholeBodyFault | Promise<Uint8Array | WholeBodyFault> {
    // Most answers came whole with their head: nothing has to be waited for.
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

  /** Ends the request at once; the connection is closed. */
  abort(why: string): void {
    if (!this.#ended && this.#error === null) this.#sending.abort(new AbandonedError(why))
  }

  /** Lets the answer run to its end unread: for a reader it is over now. `over` is called when it really is. */
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
    // Mostly one is taken at a time; a list that is pushed to has room for sixteen more.
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
  return new UpstreamError('the upstream ended before its answer was complete', { cause })
}

function tooSlow(cause?: Error): UpstreamError {
  return new UpstreamError('the upstream did not answer in time', { code: 'upstream_timeout', cause })
}

function ignore(): void {}
