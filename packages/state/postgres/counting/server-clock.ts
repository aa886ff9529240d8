import type { Clock } from '@plat/core'

/** Estimate of the database's clock: one clock for the windows of all gateways, whatever theirs show. */
export class ServerClock {
  readonly #clock: Clock
  /** Database clock minus the monotonic clock of this process, in milliseconds. */
  #ahead: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#ahead = clock.now() - clock.monotonic()
  }

  /** Milliseconds since the epoch, whole. */
  now(): number {
    return Math.floor(this.#clock.monotonic() + this.#ahead)
  }

  /** `at` is the time of the database's clock at some moment since `requestedAt`, by the monotonic clock. */
  saw(at: number, requestedAt: number): void {
    this.#ahead = at - (requestedAt + this.#clock.monotonic()) / 2
  }
}
