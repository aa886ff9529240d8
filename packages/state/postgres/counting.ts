import type { Clock } from '@plat/core'
import type { Database } from './database.ts'
import { StateUnreachable } from './pool.ts'

/** Questions that go to the database at once: one transaction for all of them, and one at a time of each replica. */
const BATCH = 128
/** Questions that wait at most; one more is refused at once. */
const MAX_WAITING = 100_000
/** When what must be counted is tried again, in milliseconds. */
const RETRY_MS = 250

/** One item of a hold as the database keeps it: key, window, amount, cap, and when the window ends. */
export interface StoredItem {
  readonly k: string
  readonly w: string
  readonly a: number
  readonly c: number
  readonly e: number | null
}

export type Question =
  | {
      readonly do: 'take'
      readonly id: string
      readonly until: number
      readonly taken: string
      readonly items: readonly StoredItem[]
    }
  | {
      readonly do: 'extend'
      readonly id: string
      readonly grown: number
      readonly more: readonly StoredItem[]
      readonly items: readonly StoredItem[]
    }
  | { readonly do: 'settle'; readonly id: string; readonly spent: Readonly<Record<string, number>> }
  | { readonly do: 'used'; readonly k: string; readonly w: string }

/** What the database says; which members are there follows from the question. */
export interface Answer {
  /** `take`: the hold is open already, with these items or with others. */
  readonly same?: boolean
  /** Which item was too short, and what is left of it. */
  readonly short?: number
  readonly left?: number
  /** `extend`: the hold is over. */
  readonly over?: boolean
  /** `settle`: what is spent in all by now, for each item. */
  readonly spent?: readonly number[]
}

interface Waiting {
  readonly question: Question
  /** Null: the database could not be asked, and will be again. */
  answer(answer: Answer | null): void
  /** Null for what must be counted sooner or later. */
  readonly refuse: ((error: unknown) => void) | null
}

/** Asks the counters for a replica, many questions at a time, in their order. */
export class Counting {
  readonly #database: Database
  readonly #clock: Clock
  readonly #owner: string
  readonly #queue: Waiting[] = []
  /** What must be counted, and could not be. */
  readonly #owed: Waiting[] = []
  #busy: Promise<void> | null = null
  #cancelRetry: () => void = () => {}

  /** `owner`: this run of this replica. */
  constructor({ database, clock, owner }: { database: Database; clock: Clock; owner: string }) {
    this.#database = database
    this.#clock = clock
    this.#owner = owner
  }

  get database(): Database {
    return this.#database
  }

  /** Rejects with `StateUnreachable`. */
  ask(question: Question): Promise<Answer> {
    if (this.#queue.length >= MAX_WAITING)
      return Promise.reject(new StateUnreachable('too many questions wait for the state database'))
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#queue.push({ question, answer: (answer) => resolve(answer ?? {}), refuse: reject })
    this.#run()
    return promise
  }

  /** What has to be counted: null when that happens only later. Never rejects. */
  owe(question: Question): Promise<Answer | null> {
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    this.#queue.push({ question, answer: resolve, refuse: null })
    this.#run()
    return promise
  }

  /** Ends after what waits was tried once more. */
  async close(): Promise<void> {
    this.#cancelRetry()
    this.#run()
    await this.#busy
    this.#cancelRetry()
  }

  #run(): void {
    this.#busy ??= this.#empty()
  }

  async #empty(): Promise<void> {
    // Whoever asks in this turn is in the first batch.
    await Promise.resolve()
    // What is owed comes before what is asked later: the same call may take again what it gives back.
    this.#queue.unshift(...this.#owed.splice(0))
    try {
      while (this.#queue.length > 0) await this.#send(this.#queue.splice(0, BATCH))
    } finally {
      // In the same step in which nothing waits: whoever asks next begins anew.
      this.#busy = null
    }
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const questions = JSON.stringify(batch.map(({ question }) => question))
    try {
      const [row] = await this.#database.again<{ answers: Answer[] }>(
        `SELECT ${this.#database.schema}.count($1, $2, $3::jsonb) AS answers`,
        [this.#owner, this.#clock.now(), questions],
      )
      for (const [at, { answer }] of batch.entries()) answer(row?.answers[at] ?? {})
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  /** Whoever can be refused is; what must be counted comes first when somebody asks again, or after a while. */
  #failed(batch: readonly Waiting[], error: unknown): void {
    const failed = [...batch, ...this.#queue.splice(0)]
    this.#owed.push(...failed.filter(({ refuse }) => refuse === null))
    for (const { refuse, answer } of failed) {
      if (refuse === null) answer(null)
      else refuse(error)
    }
    this.#cancelRetry()
    this.#cancelRetry = this.#clock.after(RETRY_MS, () => this.#run())
  }
}
