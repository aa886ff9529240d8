import { AdminError } from '../../admin/index.ts'

/** Searches of one caller that run at a time. */
export const SEARCHES_MAX = 4

/** Limits the searches of each caller. */
export class Turns {
  readonly #running = new Map<string, number>()

  /** Rejects with `rate_limited` while too many searches of this caller run. */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(caller) ?? 0
    if (running >= SEARCHES_MAX) {
      throw new AdminError(
        'rate_limited',
        `at most ${SEARCHES_MAX} searches of sessions at a time: try again when one has ended`,
      )
    }
    this.#running.set(caller, running + 1)
    try {
      return await work()
    } finally {
      const left = (this.#running.get(caller) ?? 1) - 1
      if (left === 0) this.#running.delete(caller)
      else this.#running.set(caller, left)
    }
  }
}
