import type { Clock } from '@plat/core'

/**
 * A timeout that is reset with each request and each read. The timer only runs to the earliest deadline set, and checks there: a busy connection
 * starts a few timers per minute, not two per request.
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

  /** Fires after `ms` milliseconds, replacing the previous timeout; 0 disables it. */
  set(ms: number): void {
    if (ms === 0) {
      this.off()
      return
    }
    const now = this.#clock.monotonic()
    this.#dueAt = now + ms
    if (this.#dueAt < this.#timerAt) this.#start(ms)
  }

  /** Disables the timeout until the next `set`. */
  off(): void {
    this.#dueAt = Number.POSITIVE_INFINITY
  }

  /** Disables the timeout for good. */
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
