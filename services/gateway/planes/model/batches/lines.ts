const LF = 0x0a
const CR = 0x0d

/** A line is longer than its limit. */
export class LineTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`longer than ${maxBytes} bytes`)
    this.name = 'LineTooLongError'
  }
}

/** Bytes of the first buffer for the beginning of a line; it doubles as often as the line needs. */
const FIRST_BYTES = 4096
/** A larger buffer is not kept for the next line, in bytes. */
const KEPT_BYTES = 64 * 1024

/**
 * Splits bytes into lines, without their ends. The beginning of a line is held in one buffer: an array of its pieces would take a hundred times its
 * bytes when they arrive one by one.
 */
export class LineSplitter {
  readonly #maxBytes: number
  #held: Buffer = Buffer.alloc(0)
  /** Bytes in use of the buffer. */
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Yields the lines that end in these bytes. Throws `LineTooLongError` after the lines before. */
  *push(bytes: Uint8Array): Generator<Uint8Array> {
    let start = 0
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      yield this.#line(bytes.subarray(start, end))
      start = end + 1
    }
    this.#keep(bytes.subarray(start))
  }

  /** Returns the last line, if it has no end; null: there is none. */
  end(): Uint8Array | null {
    return this.#size === 0 ? null : this.#line(new Uint8Array(0))
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    const size = this.#size + piece.length
    if (size > this.#maxBytes) throw new LineTooLongError(this.#maxBytes)
    if (size > this.#held.length) {
      const grown = Buffer.allocUnsafe(Math.max(size, 2 * this.#held.length, FIRST_BYTES))
      this.#held.copy(grown, 0, 0, this.#size)
      this.#held = grown
    }
    this.#held.set(piece, this.#size)
    this.#size = size
  }

  #line(last: Uint8Array): Uint8Array {
    if (this.#size + last.length > this.#maxBytes) throw new LineTooLongError(this.#maxBytes)
    const line = this.#size === 0 ? last : Buffer.concat([this.#held.subarray(0, this.#size), last])
    this.#size = 0
    if (this.#held.length > KEPT_BYTES) this.#held = Buffer.alloc(0)
    return line.at(-1) === CR ? line.subarray(0, -1) : line
  }
}

/** Yields the lines of a file. Throws `LineTooLongError`. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  const splitter = new LineSplitter(maxBytes)
  for await (const chunk of chunks) yield* splitter.push(chunk)
  const last = splitter.end()
  if (last !== null) yield last
}
