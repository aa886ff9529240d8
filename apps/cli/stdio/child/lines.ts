import { ByteBuffer } from '@plat/core'

const NEWLINE = 0x0a

/** Receives the lines of a stream. */
export interface LineReceiver {
  /** A line without its end. */
  line(bytes: Uint8Array): void
  /** Called once for a line that exceeds the limit; `start` is its beginning. */
  tooLong(start: Uint8Array): void
}

/** Bytes that each reader may hold in any case. */
const OWN_BYTES = 64 * 1024
/** Bytes beyond, of the unfinished lines of all readers together: eight of the longest. */
const SHARED_MAX_BYTES = 256 * 1024 * 1024

/** Counts the bytes of unfinished lines that readers hold beyond `OWN_BYTES` each. */
export class LineBudget {
  readonly #maxBytes: number
  #used = 0

  constructor(maxBytes = SHARED_MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Counts a line that has grown. Returns false if there is no room for it. */
  grow(from: number, to: number): boolean {
    const more = beyond(to) - beyond(from)
    if (this.#used + more > this.#maxBytes) return false
    this.#used += more
    return true
  }

  /** The line is complete, or was dropped. */
  release(size: number): void {
    this.#used -= beyond(size)
  }
}

function beyond(size: number): number {
  return Math.max(0, size - OWN_BYTES)
}

/** Splits bytes into lines. Holds at most one unfinished line, of at most `maxBytes`; the rest of a longer one is dropped. */
export class LineReader {
  readonly #maxBytes: number
  readonly #receiver: LineReceiver
  readonly #budget: LineBudget
  readonly #rest = new ByteBuffer()
  #dropping = false

  /** `budget` is shared by readers of one process. */
  constructor(maxBytes: number, receiver: LineReceiver, budget = new LineBudget()) {
    this.#maxBytes = maxBytes
    this.#receiver = receiver
    this.#budget = budget
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
    const { size } = this.#rest
    const isShort = size + part.length <= this.#maxBytes
    if (isShort && this.#budget.grow(size, size + part.length)) {
      this.#rest.append(part)
      return
    }
    if (!isShort) this.#rest.append(part.subarray(0, this.#maxBytes - size))
    this.#budget.release(size)
    this.#dropping = true
    this.#receiver.tooLong(this.#rest.take())
  }

  #finish(): void {
    if (!this.#dropping) {
      this.#budget.release(this.#rest.size)
      this.#receiver.line(this.#rest.take())
    }
    this.#dropping = false
  }
}
