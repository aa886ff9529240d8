import type { Clock } from '@plat/core'

/** The clock of the database as a gateway knows it: one clock for the windows of all gateways, however wrong their own are. */
export class ServerClock {
  readonly #clock: Clock
  /** What the database's clock shows more than the monotonic clock of this process, in milliseconds. */
  #ahead: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#ahead = clock.now() - clock.monotonic()
  }

  /** Milliseconds since the epoch, whole. */
  now(): number {
    return Math.floor(this.#clock.monotonic() + this.#ahead)
  }

  /** `at` is what the database's clock showed at some moment since `asked`, by the monotonic clock. */
  saw(at: number, asked: number): void {
    this.#ahead = at - (asked + this.#clock.monotonic()) / 2
  }
}
