import type { Clock } from './clock.ts'

export interface PeriodicTaskOptions {
  readonly clock: Clock
  /** Milliseconds between two rounds. */
  readonly everyMs: number
  readonly job: () => Promise<void>
  /** Hears why a round failed. */
  readonly onFault: (error: unknown) => void
}

/** A job that is done again and again, and never twice at a time. */
export class PeriodicTask {
  readonly #parts: PeriodicTaskOptions
  readonly #stop: () => void
  #running: Promise<void> | null = null

  constructor(parts: PeriodicTaskOptions) {
    this.#parts = parts
    this.#stop = parts.clock.every(parts.everyMs, () => void this.now())
  }

  /** Does it now; while it is being done, waits for that. Never rejects. */
  now(): Promise<void> {
    const { job, onFault } = this.#parts
    this.#running ??= job()
      .catch(onFault)
      .finally(() => {
        this.#running = null
      })
    return this.#running
  }

  /** No further round begins; one that runs is waited for. */
  async close(): Promise<void> {
    this.#stop()
    await this.#running
  }
}
