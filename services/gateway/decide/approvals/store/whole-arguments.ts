import { type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../../../call/index.ts'
import type { Question } from './events.ts'

/** Events in the journal at which it is compacted; more if more are still needed. */
const COMPACT_AFTER_EVENTS = 1_000
/** Bytes of removed arguments after which the journal is compacted. */
const COMPACT_AFTER_BYTES = 16 * 1024 * 1024
/** Bytes that an entry takes beside its text. */
const ENTRY_BYTES = 512

const closed = { additionalProperties: false } as const

const eventSchema = Type.Union([
  Type.Object(
    {
      t: Type.Literal('kept'),
      /** As approvers may see them. */
      text: Type.String(),
      /** Shares of the pool: `<tenant>/<namespace>/<agent>`, and its session. */
      agent: Type.String(),
      session: Type.String(),
      /** Milliseconds since the epoch: from then on no approval can need them. */
      until: Type.Number(),
    },
    closed,
  ),
  Type.Object({ t: Type.Literal('removed') }, closed),
])

/** An event of the arguments of one approval. The journal key is the approval's id. */
export type ArgumentsEvent = Static<typeof eventSchema>
type StoredArguments = Extract<ArgumentsEvent, { t: 'kept' }>

/** Decodes an event of the journal. Throws for one that this version does not know. */
export function decodeArgumentsEvent(value: unknown): ArgumentsEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of the arguments of approvals', value)
}

export interface WholeArgumentsOptions {
  readonly journal: Journal<ArgumentsEvent>
  readonly observer?: PoolObserver | undefined
  /** Called with errors that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

/**
 * The whole arguments of approvals whose preview is truncated, as approvers may see them: a projection of a journal that every replica follows. They
 * are removed when their approval no longer waits.
 */
export class WholeArguments {
  readonly #options: WholeArgumentsOptions
  readonly #pool: SharedPool
  readonly #stored = new Map<string, StoredArguments>()
  /** Ids whose arguments this replica is writing: they have their place in the pool already. */
  readonly #writing = new Set<string>()
  readonly #follower: JournalFollower<ArgumentsEvent>
  #removedBytes = 0
  #isSweeping = false

  private constructor(options: WholeArgumentsOptions) {
    this.#options = options
    this.#pool = watchedPool({ name: 'approval_arguments', observer: options.observer })
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal, then follows it. Rejects if it cannot be read. */
  static async open(options: WholeArgumentsOptions): Promise<WholeArguments> {
    const whole = new WholeArguments(options)
    await whole.#follower.open()
    return whole
  }

  close(): void {
    this.#follower.close()
  }

  get(id: string): string | null {
    return this.#stored.get(id)?.text ?? null
  }

  has(id: string): boolean {
    return this.#stored.has(id)
  }

  /** Stores the arguments of a new approval. Resolves with false if a share or the total of the pool is used up. Rejects if the journal fails. */
  async keep({ id, expiresAt, ...question }: Question, text: string): Promise<boolean> {
    const agent = agentOf(question)
    const entry: StoredArguments = { t: 'kept', text, agent, session: `${agent}/${question.session}`, until: expiresAt }
    if (this.#pool.acquire(callersOf(entry), weightOf(entry)) !== null) return false
    this.#writing.add(id)
    try {
      await this.#options.journal.append(id, [entry], 0)
      return true
    } finally {
      // The journal has not delivered them.
      if (this.#writing.delete(id)) this.#pool.release(callersOf(entry), weightOf(entry))
    }
  }

  /** Removes arguments that no approver needs. `isPending` returns null for an approval that is not known. */
  async sweep(isPending: (id: string) => boolean | null, now: number): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      // An unknown approval may be one that another replica has just created.
      const over = [...this.#stored].filter(([id, { until }]) => !(isPending(id) ?? now < until))
      for (const [id] of over) await this.#options.journal.append(id, [{ t: 'removed' }], 1)
      await this.#compactIfDue()
    } catch (error) {
      this.#options.onFault(error)
    } finally {
      this.#isSweeping = false
    }
  }

  async #compactIfDue(): Promise<void> {
    const isLong = this.#follower.events >= Math.max(COMPACT_AFTER_EVENTS, 2 * this.#stored.size)
    if (!isLong && this.#removedBytes < COMPACT_AFTER_BYTES) return
    this.#removedBytes = 0
    await this.#follower.compact(() => [...this.#stored].map(([key, event]) => ({ key, version: 1, event })))
  }

  #follow({ key, event }: JournalEntry<ArgumentsEvent>): void {
    const before = this.#stored.get(key)
    if (event.t === 'kept' && before === undefined) {
      this.#stored.set(key, event)
      if (!this.#writing.delete(key)) this.#pool.add(callersOf(event), weightOf(event))
    } else if (event.t === 'removed' && before !== undefined) this.#forget(key, before)
  }

  #forget(key: string, entry: StoredArguments): void {
    this.#stored.delete(key)
    this.#pool.release(callersOf(entry), weightOf(entry))
    this.#removedBytes += weightOf(entry)
  }

  #replace(entries: readonly JournalEntry<ArgumentsEvent>[]): void {
    for (const [key, entry] of [...this.#stored]) this.#forget(key, entry)
    for (const entry of entries) this.#follow(entry)
  }
}

function callersOf({ agent, session }: StoredArguments): readonly [string, string] {
  return [agent, session]
}

function weightOf({ text }: StoredArguments): number {
  return Buffer.byteLength(text) + ENTRY_BYTES
}
