import type { IncomingHttpHeaders } from 'node:http'
import type { SharedPool } from '@plat/core'
import type { ClientRequest } from './request.ts'

/** Who receives a response. Exactly one of `onEnd` and `onFailure` comes, and it comes last. */
export interface Receiver {
  onHead(status: number, headers: IncomingHttpHeaders): void
  /** Bytes of the body as they came, without transfer coding. They belong to the receiver. */
  onData(bytes: Uint8Array): void
  onEnd(): void
  onFailure(error: Error): void
}

/** What a transfer needs of the connection that carries it. */
export interface Carrier {
  pause(): void
  resume(): void
  /** Closes the connection without a word to the transfer. */
  cut(): void
}

/** One request and its response, seen by the one who sent it. */
export interface Sending {
  /** Holds the body back: the server feels it. */
  pause(): void
  resume(): void
  /** Ends it at once; the connection is closed, and the receiver gets the error. Without effect once it is over. */
  abort(error: Error): void
}

/** A request on its way. It lets go of its connection when it is over, which may serve another request by then. */
export class Transfer implements Sending {
  /** The head of the request as text. */
  readonly head: string
  readonly request: ClientRequest
  readonly receiver: Receiver
  carrier: Carrier | null = null
  /** It has been sent a second time. */
  resent = false
  /** What it holds one unit of for its caller; null: nothing. */
  pool: SharedPool | null = null
  #over = false

  constructor(head: string, request: ClientRequest, receiver: Receiver) {
    this.head = head
    this.request = request
    this.receiver = receiver
  }

  get over(): boolean {
    return this.#over
  }

  pause(): void {
    this.carrier?.pause()
  }

  resume(): void {
    this.carrier?.resume()
  }

  abort(error: Error): void {
    if (this.#over) return
    this.carrier?.cut()
    this.fail(error)
  }

  end(): void {
    if (this.#finish()) this.receiver.onEnd()
  }

  fail(error: Error): void {
    if (this.#finish()) this.receiver.onFailure(error)
  }

  /** Returns false when it was over before. */
  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.carrier = null
    this.pool?.release(this.request.caller ?? '')
    return true
  }
}
