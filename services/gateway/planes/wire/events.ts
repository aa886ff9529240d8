import type { Frame } from '../../call/index.ts'
import type { UpstreamExchange } from './exchange.ts'
import { SseSplitter } from './sse.ts'

/** What a plane makes of each event of an upstream's stream. */
export interface EventGate<F extends Frame> {
  /** The frame that goes on for the bytes of one event; null: none. Throws what ends the stream. */
  pass(event: Uint8Array): F | null
  /** The upstream has ended its stream. Throws where that is too early. */
  ended(): void
  /** Nobody reads on: the reader has left, or the stream failed. */
  stop(): void
}

/** The frames of an event stream: one batch for what one read of the upstream completes. */
export class EventFrames<F extends Frame> implements AsyncIterableIterator<readonly F[]> {
  readonly #exchange: UpstreamExchange
  readonly #gate: EventGate<F>
  readonly #splitter = new SseSplitter()
  #over = false

  constructor(exchange: UpstreamExchange, gate: EventGate<F>) {
    this.#exchange = exchange
    this.#gate = gate
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Throws when the upstream dies, or sends what must not pass. */
  async next(): Promise<IteratorResult<readonly F[], undefined>> {
    try {
      while (!this.#over) {
        const chunks = await this.#exchange.read()
        if (chunks === null) this.#over = true
        const events = chunks === null ? this.#splitter.end() : chunks.flatMap((chunk) => this.#splitter.push(chunk))
        const frames = this.#passed(events)
        if (frames.length > 0) return { done: false, value: frames }
      }
      this.#gate.ended()
    } catch (error) {
      this.#over = true
      this.#gate.stop()
      throw error
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<readonly F[], undefined>> {
    if (!this.#over) this.#gate.stop()
    this.#over = true
    return { done: true, value: undefined }
  }

  #passed(events: readonly Uint8Array[]): F[] {
    const frames: F[] = []
    for (const event of events) {
      const frame = this.#gate.pass(event)
      if (frame !== null) frames.push(frame)
    }
    return frames
  }
}
