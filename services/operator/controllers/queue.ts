import { Backoff, type Clock, type Ids } from '@plat/core'
import { FairLane } from './fair-lane.ts'

/** Longest pause after the first failure of a key, in milliseconds; it doubles with each further one. */
const RETRY_FIRST_MS = 250
/** Longest pause after a failure, and longest Retry-After that is waited for, in milliseconds. */
const RETRY_MAX_MS = 60_000

/** Called for events of a queue. */
export interface QueueObserver {
  added(): void
  retried(): void
  /** How many keys wait now. */
  depth(keys: number): void
  /** How long a key has waited, in milliseconds. */
  waited(ms: number): void
}

export interface QueueParts {
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly observer: QueueObserver
  /** Called whenever a key is added: urgent keys come before all others. Default: none is. */
  readonly isUrgent?: ((key: string) => boolean) | undefined
}

/**
 * Keys that wait to be worked on. A key waits once however often it is added; one that is added while it is worked on comes again
 * afterwards, and is never worked on twice at a time.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #observer: QueueObserver
  readonly #isUrgent: (key: string) => boolean
  readonly #backoff: Backoff
  /** Urgent keys come before all others. */
  readonly #urgent = new FairLane()
  readonly #waiting = new FairLane()
  readonly #running = new Set<string>()
  readonly #again = new Set<string>()
  readonly #later = new Map<string, { readonly at: number; readonly cancel: () => void }>()
  readonly #failures = new Map<string, number>()
  #wake = new Set<() => void>()

  constructor({ clock, ids, observer, isUrgent = () => false }: QueueParts) {
    this.#clock = clock
    this.#isUrgent = isUrgent
    this.#observer = observer
    this.#backoff = new Backoff({ firstMs: RETRY_FIRST_MS, maxMs: RETRY_MAX_MS, ids })
  }

  add(key: string): void {
    this.#later.get(key)?.cancel()
    this.#later.delete(key)
    if (this.#running.has(key)) {
      this.#again.add(key)
      return
    }
    if (this.#urgent.has(key)) return
    const since = this.#waiting.get(key)
    const isUrgent = this.#isUrgent(key)
    if (since !== undefined && !isUrgent) return
    this.#waiting.delete(key)
    const lane = isUrgent ? this.#urgent : this.#waiting
    lane.set(key, since ?? this.#clock.monotonic())
    if (since === undefined) this.#observer.added()
    this.#observer.depth(this.#urgent.size + this.#waiting.size)
    const wake = this.#wake
    this.#wake = new Set()
    for (const one of wake) one()
  }

  /** Adds the key after some time, or at the time that it is to come already when that is sooner. */
  addAfter(key: string, ms: number): void {
    const at = this.#clock.monotonic() + ms
    const known = this.#later.get(key)
    if (known !== undefined && known.at <= at) return
    known?.cancel()
    const cancel = this.#clock.after(ms, () => {
      this.#later.delete(key)
      this.add(key)
    })
    this.#later.set(key, { at, cancel })
  }

  /** Adds a failed key after a backoff. `retryAfterMs` is the additional pause that the API server requested. */
  retry(key: string, retryAfterMs = 0): void {
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    this.#observer.retried()
    this.addAfter(key, this.#backoff.pauseMs(failures, retryAfterMs))
  }

  /** The key succeeded: its next failure is its first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /**
   * The next key, urgent ones first: namespaces take turns, and of each the key that has waited for longest comes. Null once `signal` aborts. The caller calls `done`. `lane`: a worker that takes
   * urgent keys alone is free when all others wait for something slow.
   */
  async next(signal: AbortSignal, lane: 'all' | 'urgent' = 'all'): Promise<string | null> {
    while (!signal.aborted) {
      const first = this.#urgent.shift() ?? (lane === 'all' ? this.#waiting.shift() : null)
      if (first !== null) {
        const [key, since] = first
        this.#running.add(key)
        this.#observer.depth(this.#urgent.size + this.#waiting.size)
        this.#observer.waited(this.#clock.monotonic() - since)
        return key
      }
      await this.#added(signal)
    }
    return null
  }

  done(key: string): void {
    this.#running.delete(key)
    if (this.#again.delete(key)) this.add(key)
  }

  /** No key comes by itself any more. */
  close(): void {
    for (const { cancel } of this.#later.values()) cancel()
    this.#later.clear()
  }

  #added(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done)
        this.#wake.delete(done)
        resolve()
      }
      this.#wake.add(done)
      signal.addEventListener('abort', done)
    })
  }
}
