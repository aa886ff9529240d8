const EMPTY = new Uint8Array(0)

/** Capacity of the first allocated buffer, in bytes. */
const FIRST_CAPACITY_BYTES = 1024

/**
 * Collects chunks in one buffer that doubles when full. A list of chunks would cost about a hundred bytes per chunk, so one-byte chunks would use a
 * hundred times their size; this uses at most twice the received bytes. A single chunk is not copied.
 */
export class ByteBuffer {
  /** The first chunk itself while it is the only one; then an allocated buffer. */
  #bytes: Uint8Array = EMPTY
  #size = 0
  #isOwn = false

  /** Number of bytes received since the last `take`. */
  get size(): number {
    return this.#size
  }

  append(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (this.#size === 0) {
      this.#bytes = chunk
      this.#size = chunk.length
      return
    }
    const size = this.#size + chunk.length
    if (!this.#isOwn || size > this.#bytes.length) this.#grow(size)
    this.#bytes.set(chunk, this.#size)
    this.#size = size
  }

  /** Returns all received bytes and empties the buffer. */
  take(): Uint8Array {
    const bytes = this.#isOwn ? this.#bytes.subarray(0, this.#size) : this.#bytes
    this.#bytes = EMPTY
    this.#size = 0
    this.#isOwn = false
    return bytes
  }

  #grow(size: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.max(FIRST_CAPACITY_BYTES, 2 * this.#size, size))
    bytes.set(this.#bytes.subarray(0, this.#size))
    this.#bytes = bytes
    this.#isOwn = true
  }
}
