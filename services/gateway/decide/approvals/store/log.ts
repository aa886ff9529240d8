import type { Clock } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { Book, type Entry } from './book.ts'
import type { Approval, ApprovalEvent, Question } from './events.ts'

/** Events in the journal at which it is compacted to one snapshot per approval. */
export const COMPACT_AFTER_EVENTS = 20_000
/** Pause before checking again whether the journal's follower has caught up, in milliseconds. */
const FOLLOW_CHECK_MS = 20
/** Checks before giving up on the follower. */
const FOLLOW_CHECKS_MAX = 100

/** What to do with an approval: append these events, or stop with a result. */
export type Step<R> = { readonly events: readonly ApprovalEvent[] } | { readonly result: R }

/** Outcome of a change: the approval after the events were appended, or the result that the step stopped with. */
export type Changed<R> = { readonly approval: Approval } | { readonly result: R }

export interface ApprovalLogOptions {
  readonly journal: Journal<ApprovalEvent>
  readonly clock: Clock
  /** Called for each event that the journal holds at start, with the time when it was written. */
  readonly onReplay?: ((event: ApprovalEvent, approval: Approval, at: number) => void) | undefined
  /** Called once for each event that this replica made durable. */
  readonly onEvent: (event: ApprovalEvent, approval: Approval) => void
  /** Called after each change of the book, whichever replica made it. */
  readonly onChange: (entry: Pick<JournalEntry<ApprovalEvent>, 'key' | 'event'>) => void
  /** Called after the book was replaced by what the journal holds. */
  readonly onReplace: () => void
  /** Called with errors that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

/**
 * The journal of approvals and the book that follows it. The book applies events in the journal's order only, never
 * before the journal delivers them, so that every replica reaches the same state: of two identical questions the first in
 * the journal counts, everywhere.
 */
export class ApprovalLog {
  #book = new Book()
  readonly #options: ApprovalLogOptions
  /** The last change of each approval that is under way: changes of one approval run one after another. */
  readonly #last = new Map<string, Promise<void>>()
  /** Questions written by this replica; false until the journal has delivered them. */
  readonly #written = new Map<string, boolean>()
  readonly #follower: JournalFollower<ApprovalEvent>

  private constructor(options: ApprovalLogOptions) {
    this.#options = options
    const { journal, onFault, onReplay } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      replay: (entry) => {
        this.#follow(entry)
        const approval = this.get(entry.key)
        if (approval !== null) onReplay?.(entry.event, approval, entry.at)
      },
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal, then follows it. */
  static async open(options: ApprovalLogOptions): Promise<ApprovalLog> {
    const log = new ApprovalLog(options)
    await log.#follower.open()
    return log
  }

  get book(): Book {
    return this.#book
  }

  get(id: string): Approval | null {
    return this.book.get(id)?.approval ?? null
  }

  /** Whether a change of this approval is under way. */
  isChanging(id: string): boolean {
    return this.#last.has(id)
  }

  /** Returns false if an identical question was in the journal first: that one counts. Rejects if the journal fails. */
  async create(question: Question, call: string): Promise<boolean> {
    const { id } = question
    const event: ApprovalEvent = { t: 'created', question, call }
    this.#written.set(id, false)
    try {
      const version = await this.#options.journal.append(id, [event], 0)
      if (version === 'conflict') throw new Error('an approval with this id exists already')
      await this.#caughtUp(() => this.#written.get(id) === true)
    } finally {
      this.#written.delete(id)
    }
    const approval = this.get(id)
    if (approval !== null) this.#options.onEvent(event, approval)
    return approval !== null
  }

  /**
   * Appends the events that `step` derives from the approval (null if unknown), unless it stops with a result. Runs `step`
   * again when another replica changed the approval first. Rejects if the journal fails.
   */
  async change<R>(id: string, step: (entry: Entry | null) => Step<R>): Promise<Changed<R>> {
    const before = this.#last.get(id)
    const { promise: done, resolve } = Promise.withResolvers<void>()
    this.#last.set(id, done)
    await before
    try {
      return await this.#change(id, step)
    } finally {
      if (this.#last.get(id) === done) this.#last.delete(id)
      resolve()
    }
  }

  /** Forgets finished approvals and compacts the journal when it has grown long. */
  tidy(): void {
    this.book.forget(this.#options.clock.now())
    if (this.#follower.events >= COMPACT_AFTER_EVENTS)
      this.#follower.compact(() => this.book.snapshot()).catch(this.#options.onFault)
  }

  close(): void {
    this.#follower.close()
  }

  async #change<R>(id: string, step: (entry: Entry | null) => Step<R>): Promise<Changed<R>> {
    for (;;) {
      const entry = this.book.get(id)
      const next = step(entry)
      if ('result' in next) return next
      if (entry === null) throw new Error(`events for an approval that is not known: ${id}`)
      const { version } = entry
      const { events } = next
      if ((await this.#options.journal.append(id, events, version)) === 'conflict') {
        await this.#caughtUp(() => entry.version > version)
        continue
      }
      await this.#caughtUp(() => entry.version >= version + events.length)
      for (const event of events) this.#options.onEvent(event, entry.approval)
      return { approval: entry.approval }
    }
  }

  /** A journal delivers what it appended before it answers, except while following begins or after it has failed. */
  async #caughtUp(isKnown: () => boolean): Promise<void> {
    for (let checks = 0; !isKnown(); checks++) {
      if (checks === FOLLOW_CHECKS_MAX) throw new Error('the approvals journal is ahead of what this replica has read')
      await new Promise<void>((resolve) => this.#options.clock.after(FOLLOW_CHECK_MS, resolve))
    }
  }

  #follow(entry: JournalEntry<ApprovalEvent>): void {
    const isNew = this.book.apply(entry)
    if (this.#written.has(entry.key)) this.#written.set(entry.key, true)
    if (isNew) this.#options.onChange(entry)
  }

  /** Starts over with what the journal holds. */
  #replace(entries: readonly JournalEntry<ApprovalEvent>[]): void {
    this.#book = new Book()
    for (const entry of entries) this.#follow(entry)
    this.#options.onReplace()
  }
}
