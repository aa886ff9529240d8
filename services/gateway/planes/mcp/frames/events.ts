import type { UpstreamExchange } from '../upstream.ts'
import { McpFrame } from './frame.ts'
import { SseSplitter } from './sse.ts'

/** What the plane makes of each frame of a stream. */
export interface FrameGate {
  /** The frame that goes on; null: none. Throws what ends the stream. */
  pass(frame: McpFrame): McpFrame | null
  /** The reader has left before the end. */
  stop(): void
  /** The stream is over. */
  done(): void
}

/** The frames of an event stream: one batch for what one read of the upstream completes. */
export class EventFrames implements AsyncIterableIterator<readonly McpFrame[]> {
  readonly #exchange: UpstreamExchange
  readonly #gate: FrameGate
  readonly #splitter = new SseSplitter()
  #over = false

  constructor(exchange: UpstreamExchange, gate: FrameGate) {
    this.#exchange = exchange
    this.#gate = gate
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Throws when the upstream dies, or sends what must not pass. */
  async next(): Promise<IteratorResult<readonly McpFrame[], undefined>> {
    try {
      while (!this.#over) {
        const chunks = await this.#exchange.read()
        if (chunks === null) this.#over = true
        const events = chunks === null ? this.#splitter.end() : chunks.flatMap((chunk) => this.#splitter.push(chunk))
        const frames = this.#passed(events)
        if (frames.length > 0) return { done: false, value: frames }
      }
    } catch (error) {
      this.#over = true
      this.#gate.stop()
      throw error
    }
    this.#gate.done()
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<readonly McpFrame[], undefined>> {
    if (!this.#over) this.#gate.stop()
    this.#over = true
    return { done: true, value: undefined }
  }

  #passed(events: readonly Uint8Array[]): McpFrame[] {
    const frames: McpFrame[] = []
    for (const event of events) {
      const frame = this.#gate.pass(McpFrame.event(event))
      if (frame !== null) frames.push(frame)
    }
    return frames
  }
}
