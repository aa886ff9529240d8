import type { ServerResponse } from 'node:http'

/** Bytes of one response that may wait for its reader before the process is paused, or the response is given up. */
const FULL_BYTES = 1024 * 1024

/** Header with the reason of a failure, for the gateway. */
export const REASON_HEADER = 'plat-stdio-reason'

/** Why a request was not answered. */
export interface Failure {
  readonly status: number
  readonly reason: string
  readonly retryAfterMs?: number
}

/**
 * The response to one request of the gateway. The first message decides its form: a JSON body if it is the response itself, an event stream
 * if another message comes before.
 */
export class Reply {
  readonly #response: ServerResponse
  readonly #acceptsEvents: boolean
  readonly #headers: Readonly<Record<string, string>>
  #isOver = false

  /** `headers` are sent with every success. */
  constructor(response: ServerResponse, acceptsEvents: boolean, headers: Readonly<Record<string, string>> = {}) {
    this.#response = response
    this.#acceptsEvents = acceptsEvents
    this.#headers = headers
  }

  /** Whether messages before the response can be sent. */
  get takesMessages(): boolean {
    return this.#acceptsEvents && !this.#isOver
  }

  /** Whether its reader is so slow that no more should be written. */
  get isFull(): boolean {
    return this.#response.writableLength > FULL_BYTES
  }

  /** Calls `done` when the reader has caught up, or has left. */
  whenDrained(done: () => void): void {
    let isDone = false
    const once = () => {
      if (isDone) return
      isDone = true
      this.#response.off('drain', once).off('close', once)
      done()
    }
    this.#response.once('drain', once).once('close', once)
  }

  /** Calls `gone` when the connection closes before the response is complete. */
  onAbandoned(gone: () => void): void {
    this.#response.once('close', () => {
      if (this.#isOver) return
      this.#isOver = true
      gone()
    })
  }

  /** Sends the head of an event stream. */
  open(): void {
    if (this.#response.headersSent) return
    this.#response.writeHead(200, {
      ...this.#headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    })
    this.#response.flushHeaders()
  }

  /** Sends a message before the response. */
  message(json: Uint8Array): void {
    if (!this.takesMessages) return
    this.open()
    this.#event(json)
  }

  /** Sends the response and ends. `status` is that of a JSON body. */
  finish(json: Uint8Array, status = 200): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#response.headersSent) {
      this.#event(json)
      this.#response.end()
      return
    }
    const length = { 'content-type': 'application/json', 'content-length': String(json.length) }
    this.#response.writeHead(status, { ...this.#headers, ...length }).end(json)
  }

  /** Ends without content. */
  empty(status: number): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#response.headersSent) this.#response.end()
    else this.#response.writeHead(status, { ...this.#headers }).end()
  }

  /** Ends without a response. */
  fail({ status, reason, retryAfterMs }: Failure): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#response.headersSent) {
      this.#response.destroy()
      return
    }
    const wait = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
    this.#response.writeHead(status, { [REASON_HEADER]: encodeURIComponent(reason), ...wait }).end()
  }

  /** Closes the connection; the caller counts as gone. */
  cut(): void {
    this.#response.destroy()
  }

  #event(json: Uint8Array): void {
    this.#response.cork()
    this.#response.write('event: message\ndata: ')
    this.#response.write(json)
    this.#response.write('\n\n')
    this.#response.uncork()
  }
}
