import {
  Backoff,
  type Clock,
  type Ids,
  keepAlive,
  type PoolObserver,
  reasonOf,
  type SharedPool,
  watchedPool,
} from '@plat/core'
import { KeyServiceError } from '@plat/keys'
import type { Log } from '@plat/process'

/** Time limit of one operation with its waiting time and all attempts, in milliseconds. */
const OPERATION_MS = 10_000
/** Attempts of one operation: the first, and those after failures that may pass. */
const MAX_ATTEMPTS = 4
/** Pauses between attempts, in milliseconds. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000
/** Operations sent at a time; the others wait. */
const MAX_PARALLEL = 16

export type KeyServiceName = 'kms' | 'azurekv' | 'pkcs11'
export type KeyOperation = 'describe' | 'sign' | 'wrap' | 'unwrap'

/** A finished operation, for metrics. */
export interface KeyCallResult {
  readonly service: KeyServiceName
  readonly operation: KeyOperation
  readonly outcome: 'ok' | KeyServiceError['kind']
  readonly seconds: number
}

/** A failure that may pass, such as throttling. */
export class TransientKeyError extends Error {
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs = 0) {
    super(message)
    this.name = 'TransientKeyError'
    this.retryAfterMs = retryAfterMs
  }
}

export interface KeyCall {
  readonly service: KeyServiceName
  readonly operation: KeyOperation
  /** The key, for messages. */
  readonly key: string
  /** Whose share of the queue is used. */
  readonly caller?: string | undefined
}

export interface KeyCallsOptions {
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly onCall: (result: KeyCallResult) => void
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly observer?: PoolObserver | undefined
}

/** Runs operations of key services: a bounded queue with shares, a time limit, and retries with backoff. */
export class KeyCalls {
  readonly #options: KeyCallsOptions
  readonly #pool: SharedPool
  readonly #backoff: Backoff
  readonly #waiting: (() => void)[] = []
  /** Keys whose last operation failed. */
  readonly #failing = new Set<string>()
  #running = 0

  constructor(options: KeyCallsOptions) {
    this.#options = options
    this.#pool = watchedPool({ name: 'key_service_requests', observer: options.observer })
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
  }

  /** Rejects with `KeyServiceError` only. `attempt` throws `TransientKeyError` for what may pass, and must settle within a few seconds. */
  async run<T>(call: KeyCall, attempt: () => Promise<T>): Promise<T> {
    const { clock, onCall } = this.#options
    const { service, operation, key, caller = '' } = call
    const started = clock.monotonic()
    const report = (outcome: KeyCallResult['outcome']) =>
      onCall({ service, operation, outcome, seconds: (clock.monotonic() - started) / 1000 })
    const bound = this.#pool.acquire(caller)
    if (bound !== null) {
      report('overloaded')
      throw new KeyServiceError('overloaded', `${key}: too many requests wait for the key service (${bound})`)
    }
    // A command would end during the pause before an attempt.
    const letEnd = keepAlive()
    try {
      const result = await this.#inTime(call, () => this.#attempts(attempt, started + OPERATION_MS))
      report('ok')
      this.#logOutcome(call, null)
      return result
    } catch (error) {
      const failure = error instanceof KeyServiceError ? error : failed(key, error)
      report(failure.kind)
      this.#logOutcome(call, failure)
      throw failure
    } finally {
      letEnd()
      this.#pool.release(caller)
    }
  }

  /** Logs only the first of consecutive failures of a key, and that it works again. */
  #logOutcome({ service, operation, key }: KeyCall, failure: KeyServiceError | null): void {
    const { log } = this.#options
    if (failure === null) {
      if (this.#failing.delete(key)) log.info({ service, key }, 'the key service works again')
    } else if (!this.#failing.has(key)) {
      this.#failing.add(key)
      log.warn({ service, key, operation, error: failure.message }, 'the key service failed')
    }
  }

  /** The deadline counts from the request, so a queue that does not move empties by itself. */
  #inTime<T>({ key, operation }: KeyCall, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let isOver = false
      const begin = () => {
        if (isOver) return this.#next()
        work()
          .finally(() => this.#next())
          .then(resolve, reject)
          .finally(cancel)
      }
      const cancel = this.#options.clock.after(OPERATION_MS, () => {
        isOver = true
        const message = `${key}: no result of ${operation} within ${OPERATION_MS / 1000} s`
        reject(new KeyServiceError('unavailable', message))
      })
      this.#enter(begin)
    })
  }

  #enter(begin: () => void): void {
    if (this.#running >= MAX_PARALLEL) {
      this.#waiting.push(begin)
      return
    }
    this.#running++
    begin()
  }

  #next(): void {
    this.#running--
    const begin = this.#waiting.shift()
    if (begin !== undefined) this.#enter(begin)
  }

  async #attempts<T>(attempt: () => Promise<T>, deadline: number): Promise<T> {
    const { clock } = this.#options
    for (let failures = 0; ; failures++) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof TransientKeyError) || failures + 1 >= MAX_ATTEMPTS) throw error
        const pauseMs = this.#backoff.pauseMs(failures, error.retryAfterMs)
        if (clock.monotonic() + pauseMs >= deadline) throw error
        await new Promise<void>((resolve) => void clock.after(pauseMs, resolve))
      }
    }
  }
}

function failed(key: string, error: unknown): KeyServiceError {
  return new KeyServiceError('unavailable', `${key}: ${reasonOf(error)}`)
}
