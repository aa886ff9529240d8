import { type Clock, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { isApproval, type Notice, noticeSchema } from '../notice.ts'

/** How long it is remembered that something was told, in milliseconds: longer than records are looked through at start. */
const REMEMBER_MS = 48 * 60 * 60_000
/** Notices that were told and are remembered at most; the oldest are forgotten first. */
const REMEMBERED_MAX = 50_000
/** How often what is old is looked for, in milliseconds. */
const SWEEP_EVERY_MS = 60_000
/** Events after which the journal is written anew. */
const COMPACT_AFTER_EVENTS = 20_000

const closed = { additionalProperties: false } as const
const names = Type.Array(Type.String())

const eventSchema = Type.Union([
  /** Since when there is an outbox: what happened before is not told. */
  Type.Object({ t: Type.Literal('began'), at: Type.Number() }, closed),
  Type.Object({ t: Type.Literal('queued'), notice: noticeSchema, to: names, at: Type.Number() }, closed),
  Type.Object({ t: Type.Literal('delivered'), to: Type.String() }, closed),
  Type.Object({ t: Type.Literal('dropped'), to: Type.String(), why: Type.String() }, closed),
  /** How a notice stands; one that nobody waits for is only remembered. */
  Type.Object(
    { t: Type.Literal('kept'), notice: Type.Union([noticeSchema, Type.Null()]), to: names, at: Type.Number() },
    closed,
  ),
])

export type OutboxEvent = Static<typeof eventSchema>

/** Reads an event from the journal. Throws for one that this version does not know. */
export function decodeOutboxEvent(value: unknown): OutboxEvent {
  if (Check(eventSchema, value)) return value
  throw new Error('an event of the notification outbox is not known in this version')
}

/** The key of `began`. */
const OUTBOX = 'outbox'

interface Entry {
  /** Null: told to all, and only remembered. */
  notice: Notice | null
  /** Notifiers that have not been told. */
  readonly waiting: Set<string>
  readonly at: number
  version: number
}

export interface OutboxOptions {
  readonly journal: Journal<OutboxEvent>
  readonly clock: Clock
  /** The journal could not be written: what waits is told as long as the process lives. */
  readonly onFault: (error: unknown) => void
  readonly observer?: PoolObserver | undefined
}

/** What has to be told, until it was: durable before it is sent, and remembered afterwards so that nothing is queued twice. */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #entries = new Map<string, Entry>()
  readonly #stop = new AbortController()
  readonly #stopSweep: () => void
  #beganAt = 0
  readonly #waiting: SharedPool
  #lastSeq = 0
  #events = 0

  private constructor(options: OutboxOptions) {
    this.#options = options
    this.#waiting = watchedPool({ name: 'notifications', observer: options.observer })
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Rejects when the journal cannot be read. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options)
    const { journal, clock, onFault } = options
    for await (const entry of journal.read(0)) {
      outbox.#apply(entry)
      outbox.#count(entry)
    }
    if (outbox.#beganAt === 0) {
      outbox.#beganAt = clock.now()
      await journal.append(OUTBOX, [{ t: 'began', at: outbox.#beganAt }])
    }
    journal.follow(outbox.#lastSeq, (entry) => outbox.#count(entry), outbox.#stop.signal).catch(onFault)
    return outbox
  }

  /** Milliseconds since the epoch. */
  get beganAt(): number {
    return this.#beganAt
  }

  /** Is it queued, or was it told lately? */
  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** Resolves when it is durable. False: too much waits, and it is lost. Rejects with the journal; it waits in memory then. */
  async put(notice: Notice, to: readonly string[]): Promise<boolean> {
    if (this.#waiting.acquire(callersOf(notice)) !== null) return false
    const at = this.#options.clock.now()
    this.#entries.set(notice.id, { notice, waiting: new Set(to), at, version: 1 })
    await this.#options.journal.append(notice.id, [{ t: 'queued', notice, to: [...to], at }])
    return true
  }

  /** What this notifier has not been told, the oldest first. */
  waitingFor(name: string): Notice[] {
    return [...this.#entries.values()].flatMap(({ notice, waiting }) =>
      notice !== null && waiting.has(name) ? [notice] : [],
    )
  }

  /** Every notifier that something waits for. */
  names(): Set<string> {
    return new Set([...this.#entries.values()].flatMap(({ waiting }) => [...waiting]))
  }

  /** The notifier was told, or never will be (`why`). Whoever dies before this is durable tells it once more. */
  async settle(id: string, to: string, why: string | null = null): Promise<void> {
    const event: OutboxEvent = why === null ? { t: 'delivered', to } : { t: 'dropped', to, why }
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    entry.version++
    this.#settled(entry, to)
    await this.#options.journal.append(id, [event]).catch(this.#options.onFault)
  }

  close(): void {
    this.#stopSweep()
    this.#stop.abort()
  }

  #settled(entry: Entry, to: string): void {
    entry.waiting.delete(to)
    if (entry.waiting.size > 0 || entry.notice === null) return
    this.#waiting.release(callersOf(entry.notice))
    entry.notice = null
  }

  #count({ seq }: JournalEntry<OutboxEvent>): void {
    this.#lastSeq = seq
    this.#events++
  }

  /** At start alone: afterwards the book is ahead of the journal. */
  #apply({ key, version, event }: JournalEntry<OutboxEvent>): void {
    const entry = this.#entries.get(key)
    switch (event.t) {
      case 'began':
        this.#beganAt = event.at
        return
      case 'queued':
      case 'kept':
        this.#entries.set(key, { notice: event.notice, waiting: new Set(event.to), at: event.at, version })
        if (event.notice !== null) this.#waiting.add(callersOf(event.notice))
        return
      case 'delivered':
      case 'dropped':
        if (entry === undefined) return
        entry.version = version
        this.#settled(entry, event.to)
    }
  }

  #sweep(): void {
    const oldest = this.#options.clock.now() - REMEMBER_MS
    let remembered = this.#entries.size - this.#waiting.used
    for (const [id, { notice, at }] of this.#entries) {
      if (notice !== null || (at >= oldest && remembered <= REMEMBERED_MAX)) continue
      this.#entries.delete(id)
      remembered--
    }
    if (this.#events >= COMPACT_AFTER_EVENTS) void this.#compact()
  }

  async #compact(): Promise<void> {
    const kept = [...this.#entries].map(([key, { notice, waiting, at, version }]) => {
      const event: OutboxEvent = { t: 'kept', notice, to: [...waiting], at }
      return { key, version, event }
    })
    const began: OutboxEvent = { t: 'began', at: this.#beganAt }
    this.#events = kept.length
    const snapshot = [{ key: OUTBOX, version: 1, event: began }, ...kept]
    await this.#options.journal.compact(this.#lastSeq, snapshot).catch(this.#options.onFault)
  }
}

/** Whose shares a notice uses: those of its kind, and of what it is about. */
function callersOf(notice: Notice): readonly [string, string] {
  const { namespace, agent, budget, server, scope } = notice.data
  const kind = isApproval(notice) ? 'approvals' : 'others'
  const source = isApproval(notice) ? [namespace, agent] : [notice.type, budget, server, scope]
  return [kind, JSON.stringify([kind, ...source])]
}
