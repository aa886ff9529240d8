import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { systemClock } from './clock.ts'

/** How long work holds the event loop before others have their turn, in milliseconds. */
const SLICE_MS = 5

/** Cuts long work into slices: `if (slices.isOver) await slices.next()` between its steps. Of real time, whatever clock a test has. */
export class Slices {
  #since = systemClock.monotonic()

  get isOver(): boolean {
    return systemClock.monotonic() - this.#since > SLICE_MS
  }

  /** Resolves after other callbacks had their turn. */
  async next(): Promise<void> {
    await setImmediate()
    this.#since = systemClock.monotonic()
  }
}

/** Bytes that are hashed in one go. */
const HASHED_BYTES = 1024 * 1024

/** SHA-256 as hex, in slices. */
export async function slicedSha256(bytes: Uint8Array): Promise<string> {
  const sum = createHash('sha256')
  const slices = new Slices()
  for (let at = 0; at < bytes.length; at += HASHED_BYTES) {
    if (slices.isOver) await slices.next()
    sum.update(bytes.subarray(at, at + HASHED_BYTES))
  }
  return sum.digest('hex')
}
