import type { Frame } from '../../../call/index.ts'
import type { ByteSource } from '../../wire/events.ts'
import { type BodyEnd, LineFrames } from '../batches/line-frames.ts'
import { ModelFrame } from '../frame.ts'

export { LineFrames }

/** The frames of a body that is not text: each batch has the bytes of one read of the upstream. */
export class ByteFrames implements AsyncIterableIterator<readonly Frame[], undefined> {
  readonly #source: ByteSource
  readonly #end: BodyEnd
  #over = false

  constructor(source: ByteSource, end: BodyEnd) {
    this.#source = source
    this.#end = end
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Rejects with an UpstreamError when the upstream fails. */
  async next(): Promise<IteratorResult<readonly Frame[], undefined>> {
    try {
      if (!this.#over) {
        await this.#source.news()
        const chunks = this.#source.take()
        if (chunks !== null) return { done: false, value: chunks.map((chunk) => ModelFrame.piece(chunk)) }
        this.#over = true
        this.#end.ended()
      }
      return { done: true, value: undefined }
    } catch (error) {
      this.#over = true
      this.#end.stop(error)
      throw error
    }
  }

  async return(): Promise<IteratorResult<readonly Frame[], undefined>> {
    if (!this.#over) this.#end.stop()
    this.#over = true
    return { done: true, value: undefined }
  }
}
