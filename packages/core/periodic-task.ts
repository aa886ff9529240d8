import type { Clock } from './clock.ts'

export interface PeriodicTaskOptions {
  readonly clock: Clock
  /** Interval between two runs, in milliseconds. */
  readonly everyMs: number
  readonly job: () => Promise<void>
  /** Called with the error of each failed run. */
  readonly onFault: (error: unknown) => void
}

/** A job that runs periodically and never overlaps itself. */
export class PeriodicTask {
  readonly #parts: PeriodicTaskOptions
  readonly #stop: () => void
  #running: Promise<void> | null = null

  constructor(parts: PeriodicTaskOptions) {
    this.#parts = parts
    this.#stop = parts.clock.every(parts.everyMs, () => void this.now())
  }

  /** Runs the job now, or waits for the current run. Never rejects. */
  now(): Promise<void> {
    const { job, onFault } = this.#parts
    this.#running ??= job()
      .catch(onFault)
      .finally(() => {
        this.#running = null
      })
    return this.#running
  }

  /** Starts no further run; resolves when the current one is done. */
  async close(): Promise<void> {
    this.#stop()
    await this.#running
  }
}
