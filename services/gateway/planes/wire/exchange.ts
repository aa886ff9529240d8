import type { IncomingHttpHeaders } from 'node:http'
import type { ClientRequest, HttpClient, Receiver, Sending } from '@plat/http'

/** Bytes of an answer that may wait for a slow reader before the upstream is paused. */
const PAUSE_AT_BYTES = 256 * 1024

export interface UpstreamHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** The gateway gave a request up; `why` is what it was for. */
export class GivenUp extends Error {
  constructor(why: string) {
    super(`given up: ${why}`)
    this.name = 'GivenUp'
  }
}

/** One request to an upstream and its answer, straight on the client's callbacks: no stream object stands in between. One reader. */
export class UpstreamExchange implements Receiver {
  readonly #sending: Sending
  #head: UpstreamHead | null = null
  #resolveHead: (head: UpstreamHead) => void = ignore
  #rejectHead: (error: Error) => void = ignore
  #chunks: Uint8Array[] = []
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

  /** Asked for once. Rejects when no head came. */
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

  /** Everything that has come since it was last asked, at least one chunk; null at the end. Throws when the upstream died. */
  take(): readonly Uint8Array[] | null {
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

  /** The whole body, or null when it is larger than `maxBytes`; the rest is then given up. */
  readAll(maxBytes: number): Uint8Array | null | Promise<Uint8Array | null> {
    // Most answers came whole with their head: nothing has to be waited for.
    const [only] = this.#chunks
    const isWhole = this.#ended && this.#chunks.length === 1 && only !== undefined && only.length <= maxBytes
    if (!isWhole) return this.#collect(maxBytes)
    this.#chunks = []
    return only
  }

  async #collect(maxBytes: number): Promise<Uint8Array | null> {
    const parts: Uint8Array[] = []
    let size = 0
    for (;;) {
      await this.news()
      const chunks = this.take()
      if (chunks === null) break
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
    if (!this.#ended && this.#error === null) this.#sending.abort(new GivenUp(why))
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
    else this.#chunks.push(chunk)
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
    this.#error = error
    this.#rejectHead(error)
    this.#over()
    this.#wakeReader()
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

function ignore(): void {}
