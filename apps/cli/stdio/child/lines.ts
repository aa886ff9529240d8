import { ByteBuffer } from '@plat/core'

const NEWLINE = 0x0a

/** Receives the lines of a stream. */
export interface LineReceiver {
  /** A line without its end. */
  line(bytes: Uint8Array): void
  /** Called once for a line that exceeds the limit; `start` is its beginning. */
  tooLong(start: Uint8Array): void
}

/** Splits bytes into lines. Holds at most one unfinished line, of at most `maxBytes`; the rest of a longer one is dropped. */
export class LineReader {
  readonly #maxBytes: number
  readonly #receiver: LineReceiver
  readonly #rest = new ByteBuffer()
  #dropping = false

  constructor(maxBytes: number, receiver: LineReceiver) {
    this.#maxBytes = maxBytes
    this.#receiver = receiver
  }

  push(chunk: Uint8Array): void {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#append(chunk.subarray(from, end))
      this.#finish()
      from = end + 1
    }
    // Copied: a short rest must not keep the whole chunk in memory.
    if (from < chunk.length) this.#append(chunk.slice(from))
  }

  /** The stream has ended; a last line without an end counts as a line. */
  end(): void {
    if (this.#rest.size > 0) this.#finish()
  }

  #append(part: Uint8Array): void {
    if (this.#dropping) return
    if (this.#rest.size + part.length <= this.#maxBytes) {
      this.#rest.append(part)
      return
    }
    this.#rest.append(part.subarray(0, this.#maxBytes - this.#rest.size))
    this.#dropping = true
    this.#receiver.tooLong(this.#rest.take())
  }

  #finish(): void {
    if (!this.#dropping) this.#receiver.line(this.#rest.take())
    this.#dropping = false
  }
}
