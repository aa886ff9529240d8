import type { Ids } from '@plat/core'

/** After the first failure, in milliseconds; each further one doubles it. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

/** How many records go at once, and how long to wait after a failure. */
export class SinkBackoff {
  readonly #ids: Pick<Ids, 'random'>
  readonly #batchSize: number
  #limit: number
  #failures = 0

  constructor(batchSize: number, ids: Pick<Ids, 'random'>) {
    this.#batchSize = batchSize
    this.#limit = batchSize
    this.#ids = ids
  }

  /** Records of the next delivery at most. */
  get limit(): number {
    return this.#limit
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** A batch of `size` was refused: the half of it is looked at alone. */
  narrow(size: number): void {
    this.#limit = Math.ceil(size / 2)
  }

  succeeded(): void {
    this.#failures = 0
    this.#limit = Math.min(this.#limit * 2, this.#batchSize)
  }

  /** Milliseconds to wait: between the half and the whole of a pause that doubles, so that many gateways do not come back at once. */
  failed(): number {
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS)
    this.#failures++
    const [byte = 0] = this.#ids.random(1)
    return Math.ceil((pause / 2) * (1 + byte / 255))
  }
}
