import type { Frame } from '../../../call/index.ts'
import type { ByteSource } from '../../wire/events.ts'
import { ModelFrame } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { LineSplitter, LineTooLongError } from './lines.ts'

/** Called when a body has ended, or when reading stops. */
export interface BodyEnd {
  ended(): void
  stop(error?: unknown): void
}

/** Longest result of one request, in bytes. */
const MAX_LINE_BYTES = 32 * 1024 * 1024

/** The frames of results: one for each line, parsed and checked. */
export class LineFrames implements AsyncIterableIterator<readonly Frame[], undefined> {
  readonly #source: ByteSource
  readonly #end: BodyEnd
  readonly #lines = new LineSplitter(MAX_LINE_BYTES)
  #over = false

  constructor(source: ByteSource, end: BodyEnd) {
    this.#source = source
    this.#end = end
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Rejects with an UpstreamError when the upstream fails, or sends what is not lines of JSON. */
  async next(): Promise<IteratorResult<readonly Frame[], undefined>> {
    try {
      if (this.#over) return { done: true, value: undefined }
      await this.#source.news()
      const chunks = this.#source.take()
      if (chunks !== null)
        return { done: false, value: chunks.flatMap((chunk) => [...this.#lines.push(chunk)].flatMap(frameOf)) }
      this.#over = true
      const last = this.#lines.end()
      this.#end.ended()
      return last === null ? { done: true, value: undefined } : { done: false, value: frameOf(last) }
    } catch (error) {
      this.#over = true
      this.#end.stop(error)
      if (error instanceof LineTooLongError) throw new InvalidResponseError('a line of results that is too long')
      throw error
    }
  }

  async return(): Promise<IteratorResult<readonly Frame[], undefined>> {
    if (!this.#over) this.#end.stop()
    this.#over = true
    return { done: true, value: undefined }
  }
}

function frameOf(line: Uint8Array): readonly Frame[] {
  return line.length === 0 ? [] : [ModelFrame.line(line)]
}
