import { Backoff, type Clock, type Ids } from '@plat/core'
import type { Log } from '@plat/process'
import { isApproval, type Notice } from '../notice.ts'
import type { Outbox } from './outbox.ts'

/** Initial backoff, doubled after each further failure, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
/** Maximum backoff and Retry-After, in milliseconds. */
const LONGEST_PAUSE_MS = 5 * 60_000
/** Older notices are dropped, in milliseconds. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60_000
/** Refusals of one notice before it is dropped. */
const REFUSALS_MAX = 8

/** Result of one attempt: `refused` concerns this notice, `away` the receiver. `why` contains no secret. */
export type Sent =
  | 'sent'
  | { readonly kind: 'refused' | 'away'; readonly why: string; readonly retryAfterMs: number | null }

export interface CourierOptions {
  readonly name: string
  /** Never rejects. */
  readonly send: (notice: Notice) => Promise<Sent>
  readonly outbox: Pick<Outbox, 'settle' | 'waitingFor'>
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
}

/**
 * Delivers notices to one receiver, one at a time. While the receiver is away all of them wait; a refused notice lets the next ones pass
 * and is retried later, up to a limit.
 */
export class Deliverer {
  readonly #options: CourierOptions
  readonly #backoff: Backoff
  /** Approvals come first: a person waits for them, and there can be many alerts. */
  readonly #queues: readonly [approvals: Notice[], others: Notice[]]
  readonly #refusals = new Map<string, number>()
  #failures = 0
  #busy = false
  #closed = false
  #cancel: (() => void) | null = null

  constructor(options: CourierOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
    const waiting = options.outbox.waitingFor(options.name)
    this.#queues = [waiting.filter(isApproval), waiting.filter((notice) => !isApproval(notice))]
  }

  /** Starts with the notices left from before this start. */
  start(): void {
    void this.#run()
  }

  offer(notice: Notice): void {
    this.#queueOf(notice).push(notice)
    void this.#run()
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  #next(): Notice | undefined {
    const [approvals, others] = this.#queues
    return approvals[0] ?? others[0]
  }

  #queueOf(notice: Notice): Notice[] {
    return this.#queues[isApproval(notice) ? 0 : 1]
  }

  async #run(): Promise<void> {
    if (this.#busy || this.#cancel !== null) return
    this.#busy = true
    for (let next = this.#next(); next !== undefined && !this.#closed; next = this.#next()) {
      const pauseMs = await this.#deliver(next)
      if (pauseMs === null) continue
      this.#cancel = this.#options.clock.after(pauseMs, () => {
        this.#cancel = null
        void this.#run()
      })
      break
    }
    this.#busy = false
  }

  /** Returns milliseconds until the next attempt, or null for at once. */
  async #deliver(notice: Notice): Promise<number | null> {
    const { send, clock } = this.#options
    if (clock.now() - Date.parse(notice.at) > GIVE_UP_AFTER_MS) return this.#drop(notice, 'not delivered for a day')
    const sent = await send(notice)
    if (this.#closed) return null
    if (sent === 'sent') {
      this.#failures = 0
      await this.#leave(notice, null)
      return null
    }
    this.#failures++
    const { kind, why, retryAfterMs } = sent
    const pauseMs = Math.max(Math.min(LONGEST_PAUSE_MS, retryAfterMs ?? 0), this.#backoff.pauseMs(this.#failures - 1))
    const { name, log } = this.#options
    log.warn({ notifier: name, notice: notice.id, why, againInMs: pauseMs }, 'a notification could not be delivered')
    if (kind === 'away') return pauseMs
    const refusals = (this.#refusals.get(notice.id) ?? 0) + 1
    if (refusals >= REFUSALS_MAX) await this.#drop(notice, why)
    else {
      this.#refusals.set(notice.id, refusals)
      const queue = this.#queueOf(notice)
      queue.push(...queue.splice(queue.indexOf(notice), 1))
    }
    return pauseMs
  }

  async #drop(notice: Notice, why: string): Promise<null> {
    this.#options.log.error(
      { notifier: this.#options.name, notice: notice.id, why },
      'a notification is dropped after its last attempt',
    )
    await this.#leave(notice, why)
    return null
  }

  async #leave(notice: Notice, why: string | null): Promise<void> {
    this.#refusals.delete(notice.id)
    const queue = this.#queueOf(notice)
    queue.splice(queue.indexOf(notice), 1)
    await this.#options.outbox.settle(notice.id, this.#options.name, why)
  }
}
