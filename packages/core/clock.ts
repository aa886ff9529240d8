import { performance } from 'node:perf_hooks'

/** Time source, injected so that tests can control it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds from an arbitrary start, with a fraction; never decreases. For measuring, not for dates. */
  monotonic(): number
  /** Runs `job` once after `ms`; returns a function that cancels it. The timer does not keep the process alive. */
  after(ms: number, job: () => void): () => void
  /** Runs `job` every `ms`; returns a function that stops it. The timer does not keep the process alive. */
  every(ms: number, job: () => void): () => void
}

/** Node fires longer timers at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, job) {
    const timer = setTimeout(job, Math.min(ms, LONGEST_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
  every(ms, job) {
    const timer = setInterval(job, Math.min(ms, LONGEST_TIMER_MS))
    timer.unref()
    return () => clearInterval(timer)
  },
}

/** Keeps the process alive, which timers of a clock do not, until the returned function is called. */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, LONGEST_TIMER_MS)
  return () => clearInterval(timer)
}

interface Alarm {
  at: number
  everyMs: number | null
  job: () => void
}

/** A clock for tests: time changes only in `advance`. */
export class TestClock implements Clock {
  #now: number
  readonly #start: number
  readonly #alarms = new Set<Alarm>()

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs
    this.#start = startMs
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now - this.#start
  }

  after(ms: number, job: () => void): () => void {
    return this.#add({ at: this.#now + ms, everyMs: null, job })
  }

  every(ms: number, job: () => void): () => void {
    return this.#add({ at: this.#now + ms, everyMs: ms, job })
  }

  /** Advances time by `ms`, fires due timers in order, and lets pending promises run after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    for (let next = this.#nextDue(end); next !== null; next = this.#nextDue(end)) {
      this.#now = next.at
      if (next.everyMs === null) this.#alarms.delete(next)
      else next.at += next.everyMs
      next.job()
      await settled()
    }
    this.#now = end
    await settled()
  }

  #add(alarm: Alarm): () => void {
    this.#alarms.add(alarm)
    return () => this.#alarms.delete(alarm)
  }

  #nextDue(end: number): Alarm | null {
    let first: Alarm | null = null
    for (const alarm of this.#alarms) if (alarm.at <= end && (first === null || alarm.at < first.at)) first = alarm
    return first
  }
}

/** Resolves after all queued callbacks have run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
