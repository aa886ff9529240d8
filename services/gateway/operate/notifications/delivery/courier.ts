import { Backoff, type Clock, type Ids } from '@plat/core'
import type { Log } from '@plat/process'
import { isApproval, type Notice } from '../notice.ts'
import type { Outbox } from './outbox.ts'

/** Initial backoff, doubled after each further failure, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
/** Maximum backoff and Retry-After, in milliseconds. */
const LONGEST_PAUSE_MS = 5 * 60_000
/** Older notices are dropped, in milliseconds. */
export const GIVE_UP_AFTER_MS = 24 * 60 * 60_000
/** Pause while it is not known whether another replica sends the notice, in milliseconds. */
const BUSY_PAUSE_MS = 5_000
/** Refusals of one notice before it is dropped. */
const REFUSALS_MAX = 8

/** Result of one attempt: `refused` concerns this notice, `away` the receiver. `why` contains no secret. */
export type Sent =
  | 'sent'
  | { readonly kind: 'refused' | 'away'; readonly why: string; readonly retryAfterMs: number | null }

/** The right to send a notice, which no other replica has meanwhile. */
export interface Claim {
  /** Never rejects. */
  release(): Promise<void>
}

export interface CourierOptions {
  readonly name: string
  /** `settled`: it was sent already; `busy`: another replica sends it, or that is not known. Never rejects. */
  readonly claim: (notice: Notice) => Promise<Claim | 'settled' | 'busy'>
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
  #running: Promise<void> | null = null
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
    this.#run()
  }

  offer(notice: Notice): void {
    const queue = this.#queueOf(notice)
    if (!queue.some(({ id }) => id === notice.id)) queue.push(notice)
    this.#run()
  }

  /** Resolves when nothing is being sent any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancel?.()
    await this.#running
  }

  #next(): Notice | undefined {
    const [approvals, others] = this.#queues
    return approvals[0] ?? others[0]
  }

  #queueOf(notice: Notice): Notice[] {
    return this.#queues[isApproval(notice) ? 0 : 1]
  }

  #run(): void {
    if (this.#running !== null || this.#cancel !== null) return
    this.#running = this.#deliverAll().finally(() => {
      this.#running = null
    })
  }

  async #deliverAll(): Promise<void> {
    for (let next = this.#next(); next !== undefined && !this.#closed; next = this.#next()) {
      const pauseMs = await this.#deliver(next)
      if (pauseMs === null) continue
      this.#cancel = this.#options.clock.after(pauseMs, () => {
        this.#cancel = null
        this.#run()
      })
      break
    }
  }

  /** Returns milliseconds until the next attempt, or null for at once. */
  async #deliver(notice: Notice): Promise<number | null> {
    const { claim, send, clock } = this.#options
    if (clock.now() - Date.parse(notice.at) > GIVE_UP_AFTER_MS) return this.#drop(notice, 'not delivered for a day')
    const claimed = await claim(notice)
    if (claimed === 'busy') return BUSY_PAUSE_MS
    if (claimed === 'settled') {
      this.#forget(notice)
      return null
    }
    const sent = await send(notice)
    if (sent === 'sent') {
      this.#failures = 0
      // The claim of a delivery that is not marked ends by itself, so that the mark may still come first.
      if (await this.#leave(notice, null)) await claimed.release()
      return null
    }
    await claimed.release()
    return this.#closed ? null : this.#failed(notice, sent)
  }

  /** Returns milliseconds until the next attempt, or null for at once. */
  async #failed(notice: Notice, sent: Exclude<Sent, 'sent'>): Promise<number | null> {
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

  #leave(notice: Notice, why: string | null): Promise<boolean> {
    this.#forget(notice)
    return this.#options.outbox.settle(notice.id, this.#options.name, why)
  }

  #forget(notice: Notice): void {
    this.#refusals.delete(notice.id)
    const queue = this.#queueOf(notice)
    queue.splice(queue.indexOf(notice), 1)
  }
}
