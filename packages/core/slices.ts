import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { systemClock } from './clock.ts'

/** Maximum time that work blocks the event loop, in milliseconds. */
const SLICE_MS = 5

/** Divides long work into slices: `if (slices.isOver) await slices.next()` between its steps. Uses real time, also in tests. */
export class Slices {
  #since = systemClock.monotonic()

  get isOver(): boolean {
    return systemClock.monotonic() - this.#since > SLICE_MS
  }

  /** Resolves after other callbacks have run. */
  async next(): Promise<void> {
    await setImmediate()
    this.#since = systemClock.monotonic()
  }
}

export async function mapInSlices<T, U>(items: Iterable<T>, map: (item: T, index: number) => U): Promise<U[]> {
  const slices = new Slices()
  const mapped: U[] = []
  for (const item of items) {
    if (slices.isOver) await slices.next()
    mapped.push(map(item, mapped.length))
  }
  return mapped
}

/** Work that yields wherever it may be interrupted, and returns its result. */
export type Steps<T> = Generator<undefined, T>

/** Runs work to its end. */
export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Runs work in slices. */
export async function runInSlices<T>(steps: Steps<T>): Promise<T> {
  const slices = new Slices()
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (slices.isOver) await slices.next()
  }
}

/** Number of bytes hashed at once. */
const HASHED_BYTES = 1024 * 1024

/** Returns the SHA-256 as hex, computed in slices. */
export async function slicedSha256(bytes: Uint8Array): Promise<string> {
  const sum = createHash('sha256')
  const slices = new Slices()
  for (let at = 0; at < bytes.length; at += HASHED_BYTES) {
    if (slices.isOver) await slices.next()
    sum.update(bytes.subarray(at, at + HASHED_BYTES))
  }
  return sum.digest('hex')
}
