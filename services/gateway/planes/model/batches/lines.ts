const LF = 0x0a
const CR = 0x0d

/** A line is longer than its limit. */
export class LineTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`longer than ${maxBytes} bytes`)
    this.name = 'LineTooLongError'
  }
}

/** Splits bytes into lines, without their ends; each byte is copied at most once. */
export class LineSplitter {
  readonly #maxBytes: number
  #pieces: Uint8Array[] = []
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
    this.#size += piece.length
    if (this.#size > this.#maxBytes) throw new LineTooLongError(this.#maxBytes)
    // A copy: the buffer of a read also has bytes of other lines.
    this.#pieces.push(Uint8Array.from(piece))
  }

  #line(last: Uint8Array): Uint8Array {
    if (this.#size + last.length > this.#maxBytes) throw new LineTooLongError(this.#maxBytes)
    const line = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last])
    this.#pieces = []
    this.#size = 0
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
