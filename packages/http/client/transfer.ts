import type { IncomingHttpHeaders } from 'node:http'
import type { SharedPool } from '@plat/core'
import type { ClientRequest } from './request.ts'

/** Receives a response. Exactly one of `onEnd` and `onFailure` is called, last. */
export interface Receiver {
  onHead(status: number, headers: IncomingHttpHeaders): void
  /** Body bytes as received, without transfer coding. The receiver owns them. */
  onData(bytes: Uint8Array): void
  onEnd(): void
  onFailure(error: Error): void
}

/** The connection as seen by a transfer. */
export interface Carrier {
  pause(): void
  resume(): void
  /** Closes the connection without calling the transfer. */
  cut(): void
}

/** A request and its response, as seen by the sender. */
export interface Sending {
  /** Stops reading the body, so that backpressure reaches the server. */
  pause(): void
  resume(): void
  /** Aborts the request: closes the connection and fails the receiver with the error. No effect after the end. */
  abort(error: Error): void
}

/** A request in progress. It releases its connection when it ends, which may serve another request by then. */
export class Transfer implements Sending {
  /** Request head as text. */
  readonly head: string
  readonly request: ClientRequest
  readonly receiver: Receiver
  carrier: Carrier | null = null
  /** Whether it was sent a second time. */
  resent = false
  /** Pool in which it holds one unit for its caller; null when it holds none. */
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

  /** Returns false when it had already ended. */
  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.carrier = null
    this.pool?.release(this.request.caller ?? '')
    return true
  }
}
