import { Backoff, type Ids } from '@plat/core'

/** Initial backoff, doubled after each further failure, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

/** Batch size and exponential backoff of a sink. */
export class SinkBackoff {
  readonly #backoff: Backoff
  readonly #batchSize: number
  #limit: number
  #failures = 0

  constructor(batchSize: number, ids: Pick<Ids, 'random'>) {
    this.#batchSize = batchSize
    this.#limit = batchSize
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids })
  }

  /** Maximum number of records in the next delivery. */
  get limit(): number {
    return this.#limit
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Called when a batch of `size` was refused: the next one is half as large. */
  narrow(size: number): void {
    this.#limit = Math.ceil(size / 2)
  }

  succeeded(): void {
    this.#failures = 0
    this.#limit = Math.min(this.#limit * 2, this.#batchSize)
  }

  /** Returns the milliseconds to wait. */
  failed(): number {
    return this.#backoff.pauseMs(this.#failures++)
  }
}
