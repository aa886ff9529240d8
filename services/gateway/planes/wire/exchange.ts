import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'

/** Bytes of an answer that may wait for a slow reader before the upstream is paused. */
const PAUSE_AT_BYTES = 256 * 1024

export interface UpstreamRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array | null
  /** Wait for the response head, in milliseconds. */
  readonly headersTimeoutMs: number
  /** How long the answer may pause, in milliseconds; 0: for ever. */
  readonly pauseTimeoutMs: number
}

export interface UpstreamHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The side of a pool that is needed here. */
export interface Sends {
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean
}

/** The gateway gave a request up; `why` is what it was for. */
export class GivenUp extends Error {
  constructor(why: string) {
    super(`given up: ${why}`)
    this.name = 'GivenUp'
  }
}

/**
 * One request to an upstream and its answer, straight on undici's callbacks: no stream object stands in between. One reader.
 */
export class UpstreamExchange implements Dispatcher.DispatchHandler {
  /** Rejects when no head came. */
  readonly head: Promise<UpstreamHead>
  #resolveHead: (head: UpstreamHead) => void = ignore
  #rejectHead: (error: Error) => void = ignore
  #controller: Dispatcher.DispatchController | null = null
  #chunks: Uint8Array[] = []
  #waiting = 0
  #ended = false
  #error: Error | null = null
  #wake: (() => void) | null = null
  #discarding = false
  #over: () => void = ignore

  constructor(pool: Sends, request: UpstreamRequest) {
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve
      this.#rejectHead = reject
    })
    // A request that is given up before anybody waits for its head must not count as an unhandled rejection.
    this.head.catch(ignore)
    const { method, path, headers, body, headersTimeoutMs: headersTimeout, pauseTimeoutMs: bodyTimeout } = request
    pool.dispatch({ method, path, headers, body, headersTimeout, bodyTimeout }, this)
  }

  /** Everything that has come since the last read, at least one chunk; null at the end. Throws when the upstream died. */
  async read(): Promise<readonly Uint8Array[] | null> {
    while (this.#chunks.length === 0) {
      if (this.#error !== null) throw this.#error
      if (this.#ended || this.#discarding) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const chunks = this.#chunks
    this.#chunks = []
    this.#waiting = 0
    if (this.#controller?.paused) this.#controller.resume()
    return chunks
  }

  /** The whole body, or null when it is larger than `maxBytes`; the rest is then given up. */
  async readAll(maxBytes: number): Promise<Uint8Array | null> {
    const parts: Uint8Array[] = []
    let size = 0
    for (let chunks = await this.read(); chunks !== null; chunks = await this.read()) {
      for (const chunk of chunks) size += chunk.length
      if (size > maxBytes) {
        this.abort('its answer is too large')
        return null
      }
      parts.push(...chunks)
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, size)
  }

  /** Ends the request at once; the connection is closed. */
  abort(why: string): void {
    if (this.#ended || this.#error !== null) return
    const error = new GivenUp(why)
    if (this.#controller === null) this.onResponseError(null, error)
    else this.#controller.abort(error)
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
    if (this.#controller?.paused) this.#controller.resume()
    this.#wakeReader()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // It was given up while it stood in the pool's queue.
    if (this.#error !== null) controller.abort(this.#error)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#resolveHead({ status, headers })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#discarding) return
    this.#chunks.push(chunk)
    this.#waiting += chunk.length
    if (this.#waiting > PAUSE_AT_BYTES) controller.pause()
    this.#wakeReader()
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#over()
    this.#wakeReader()
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#error ??= error
    this.#rejectHead(error)
    this.#over()
    this.#wakeReader()
  }

  #wakeReader(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}

function ignore(): void {}
