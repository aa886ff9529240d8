import { IncomingMessage } from 'node:http'

/** Gets a body piece by piece. After `end` and `gone` nothing counts that still comes. */
export interface BodyTaker {
  data(chunk: Uint8Array): void
  /** The body is complete. */
  end(): void
  /** The rest of it will not come. */
  gone(): void
}

/** A request whose body can be had straight from the parser: as a stream it would pass buffers and turns of the loop that nobody needs. */
export class Request extends IncomingMessage {
  #taker: BodyTaker | null = null

  /** Hands the body to `taker` as it comes. False when some of it is here already, or somebody reads it as a stream. */
  hand(taker: BodyTaker): boolean {
    if (this.complete || this.readableLength > 0 || this.readableFlowing !== null) return false
    this.#taker = taker
    // Node throws a body away when the answer has left and nobody has begun to read.
    this.read(0)
    return true
  }

  /** Called by the parser; null is the end. */
  override push(chunk: Uint8Array | null): boolean {
    const taker = this.#taker
    if (taker === null) return super.push(chunk)
    if (chunk !== null) {
      taker.data(chunk)
      return true
    }
    this.#taker = null
    const more = super.push(null)
    // A stream ends when its end is read, and Node lets go of a request that has ended.
    this.read()
    taker.end()
    return more
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#taker?.gone()
    super._destroy(error, done)
  }
}
