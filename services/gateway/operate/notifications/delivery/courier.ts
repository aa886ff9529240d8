import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { isApproval, type Notice } from '../notice.ts'
import type { Outbox } from './outbox.ts'

/** After the first failure in a row the next attempt waits so long, after each further one twice as long, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
/** Longest pause, whatever a receiver asks for, in milliseconds. */
const LONGEST_PAUSE_MS = 5 * 60_000
/** What is older than this is not told any more, in milliseconds. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60_000
/** A receiver that refuses a notice so many times will not take it. */
const REFUSALS_MAX = 8

/** How one attempt went: `refused` is about this notice, `away` about the receiver. Words hold no secret. */
export type Sent =
  | 'sent'
  | { readonly kind: 'refused' | 'away'; readonly why: string; readonly retryAfterMs: number | null }

export interface CourierOptions {
  readonly name: string
  /** Never rejects. */
  readonly send: (notice: Notice) => Promise<Sent>
  readonly outbox: Pick<Outbox, 'settle' | 'waitingFor'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Tells one receiver what waits for it, one notice after the other. While the receiver is away everything waits; a notice that it
 * refuses makes room for the next ones and comes again later, until it is given up.
 */
export class Deliverer {
  readonly #options: CourierOptions
  /** Approvals come first: a person waits for them, and alerts can be many. */
  readonly #queues: readonly [approvals: Notice[], others: Notice[]]
  readonly #refusals = new Map<string, number>()
  #failures = 0
  #busy = false
  #closed = false
  #cancel: (() => void) | null = null

  constructor(options: CourierOptions) {
    this.#options = options
    const waiting = options.outbox.waitingFor(options.name)
    this.#queues = [waiting.filter(isApproval), waiting.filter((notice) => !isApproval(notice))]
  }

  /** Begins with what waited at start. */
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
      const pauseMs = await this.#tell(next)
      if (pauseMs === null) continue
      this.#cancel = this.#options.clock.after(pauseMs, () => {
        this.#cancel = null
        void this.#run()
      })
      break
    }
    this.#busy = false
  }

  /** Milliseconds until the next attempt; null: at once. */
  async #tell(notice: Notice): Promise<number | null> {
    const { send, clock } = this.#options
    if (clock.now() - Date.parse(notice.at) > GIVE_UP_AFTER_MS) return this.#drop(notice, 'nobody took it for a day')
    const sent = await send(notice)
    if (this.#closed) return null
    if (sent === 'sent') {
      this.#failures = 0
      await this.#leave(notice, null)
      return null
    }
    this.#failures++
    const { kind, why, retryAfterMs } = sent
    const pauseMs = Math.min(
      LONGEST_PAUSE_MS,
      Math.max(retryAfterMs ?? 0, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 20)),
    )
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
    this.#options.log.error({ notifier: this.#options.name, notice: notice.id, why }, 'a notification is given up')
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
