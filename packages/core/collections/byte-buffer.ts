const EMPTY = new Uint8Array(0)

/** Capacity of the buffer that the second chunk makes necessary, in bytes. */
const FIRST_CAPACITY_BYTES = 1024

/**
 * Bytes that arrive in chunks, kept in one buffer that doubles. A list of chunks would cost about a hundred bytes for each of them, so
 * that one-byte chunks weigh a hundred times their size; this holds at most twice what has arrived. Bytes that arrive in one chunk are
 * not copied.
 */
export class ByteBuffer {
  /** The first chunk itself while it is the only one; then a buffer of our own. */
  #bytes: Uint8Array = EMPTY
  #size = 0
  #isOwn = false

  /** Bytes that have arrived since the last `take`. */
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

  /** All bytes that have arrived; the buffer is empty afterwards. */
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
