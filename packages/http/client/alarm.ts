import type { Clock } from '@plat/core'

/**
 * A time limit that is set anew with each request and each read. A timer runs only towards the earliest moment that was ever asked
 * for, and looks at the limit when it gets there: a busy connection starts a handful of timers a minute, not two for each request.
 */
export class IdleTimer {
  readonly #clock: Clock
  readonly #ring: () => void
  #dueAt = Number.POSITIVE_INFINITY
  #timerAt = Number.POSITIVE_INFINITY
  #cancel: () => void = () => {}

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings after `ms` milliseconds instead of whatever was set; 0: never. */
  set(ms: number): void {
    if (ms === 0) {
      this.off()
      return
    }
    const now = this.#clock.monotonic()
    this.#dueAt = now + ms
    if (this.#dueAt < this.#timerAt) this.#start(ms)
  }

  /** Does not ring until it is set again. */
  off(): void {
    this.#dueAt = Number.POSITIVE_INFINITY
  }

  /** Never rings again. */
  stop(): void {
    this.off()
    this.#cancel()
  }

  #start(ms: number): void {
    this.#cancel()
    this.#timerAt = this.#dueAt
    this.#cancel = this.#clock.after(ms, () => this.#look())
  }

  #look(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    if (this.#dueAt === Number.POSITIVE_INFINITY) return
    const left = this.#dueAt - this.#clock.monotonic()
    if (left > 0) this.#start(left)
    else {
      this.off()
      this.#ring()
    }
  }
}
