import { type Clock, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower, type JournalSnapshot, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { isApproval, type Notice, noticeSchema } from '../notice.ts'

/** How long delivered notices are remembered, in milliseconds: longer than the records read at start reach back. */
const REMEMBER_MS = 48 * 60 * 60_000
/** Maximum number of remembered notices; the oldest are forgotten first. */
const REMEMBERED_MAX = 50_000
/** Interval of the search for old entries, in milliseconds. */
const SWEEP_EVERY_MS = 60_000
/** Interval at which events that could not be stored are stored again, in milliseconds. */
const STORE_AGAIN_MS = 1_000
/** Events in the journal at which it is compacted. */
const COMPACT_AFTER_EVENTS = 20_000

const closed = { additionalProperties: false } as const
const names = Type.Array(Type.String())

const eventSchema = Type.Union([
  /** Time when the outbox was created: earlier events are not notified. */
  Type.Object({ t: Type.Literal('began'), at: Type.Number() }, closed),
  Type.Object({ t: Type.Literal('queued'), notice: noticeSchema, to: names, at: Type.Number() }, closed),
  Type.Object({ t: Type.Literal('delivered'), to: Type.String() }, closed),
  Type.Object({ t: Type.Literal('dropped'), to: Type.String(), why: Type.String() }, closed),
  /** State of a notice after compaction; one without waiting receivers is only remembered. */
  Type.Object(
    { t: Type.Literal('kept'), notice: Type.Union([noticeSchema, Type.Null()]), to: names, at: Type.Number() },
    closed,
  ),
])

export type OutboxEvent = Static<typeof eventSchema>

/** Decodes an event of the journal. Throws for one unknown to this version. */
export function decodeOutboxEvent(value: unknown): OutboxEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of the notification outbox', value)
}

/** Journal key of `began`. */
const OUTBOX = 'outbox'

interface Entry {
  /** Null once delivered to all: only its id is remembered. */
  notice: Notice | null
  /** Notifiers that have not received it. */
  readonly waiting: Set<string>
  readonly at: number
  /** As the journal has it; 0: the journal does not have it yet. */
  version: number
}

/** An event that the journal does not have yet. */
interface Owed {
  readonly id: string
  readonly event: OutboxEvent
}

export interface OutboxOptions {
  readonly journal: Journal<OutboxEvent>
  readonly clock: Clock
  /** Called with a notice that another replica has queued. */
  readonly onQueued?: (notice: Notice, to: readonly string[]) => void
  /** Called when the journal cannot be written: notices then wait in memory until it can. */
  readonly onFault: (error: unknown) => void
  readonly observer?: PoolObserver | undefined
}

/**
 * Queue of notices of all replicas that share the journal: durable before they are sent, and remembered afterwards so that none is queued twice.
 * Entries may be ahead of the journal, so each event of it is applied once or has no effect.
 */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #entries = new Map<string, Entry>()
  readonly #follower: JournalFollower<OutboxEvent>
  readonly #stopSweep: () => void
  #beganAt = 0
  readonly #waiting: SharedPool
  readonly #stopStoring: () => void
  #owed: Owed[] = []
  #isStoring = false

  private constructor(options: OutboxOptions) {
    this.#options = options
    this.#waiting = watchedPool({ name: 'notifications', observer: options.observer })
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      replay: (entry) => void this.#apply(entry),
      apply: (entry) => {
        const queued = this.#apply(entry)
        if (queued !== null) this.#announce(queued)
      },
      replace: (entries) => this.#replace(entries),
    })
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
    this.#stopStoring = options.clock.every(STORE_AGAIN_MS, () => void this.#storeOwed())
  }

  /** Rejects when the journal cannot be read. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options)
    const { journal, clock } = options
    await outbox.#follower.read()
    if (outbox.#beganAt === 0) {
      outbox.#beganAt = clock.now()
      // Another replica may have begun it meanwhile.
      await journal.append(OUTBOX, [{ t: 'began', at: outbox.#beganAt }], 0)
    }
    outbox.#follower.follow()
    return outbox
  }

  /** Milliseconds since the epoch. */
  get beganAt(): number {
    return this.#beganAt
  }

  /** Returns whether a notice is queued, or was delivered recently. */
  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** Returns whether this notifier has not received it. */
  isWaiting(id: string, name: string): boolean {
    return this.#entries.get(id)?.waiting.has(name) ?? false
  }

  /** Resolves when durable; false if too many wait and it is dropped. Rejects if the journal fails; it then waits in memory until it can be stored. */
  async put(notice: Notice, to: readonly string[]): Promise<boolean> {
    if (this.#waiting.acquire(callersOf(notice)) !== null) return false
    const at = this.#options.clock.now()
    this.#entries.set(notice.id, { notice, waiting: new Set(to), at, version: 0 })
    const owed: Owed = { id: notice.id, event: { t: 'queued', notice, to: [...to], at } }
    try {
      await this.#store(owed)
    } catch (error) {
      this.#owed.push(owed)
      throw error
    }
    return true
  }

  /** Notices that wait for this notifier, the oldest first. */
  waitingFor(name: string): Notice[] {
    return [...this.#entries.values()].flatMap(({ notice, waiting }) =>
      notice !== null && waiting.has(name) ? [notice] : [],
    )
  }

  /** Every notifier with waiting notices. */
  names(): Set<string> {
    return new Set([...this.#entries.values()].flatMap(({ waiting }) => [...waiting]))
  }

  /**
   * Marks a notice as delivered, or as dropped if there is a `why`. A crash before this is durable causes one more delivery. Resolves with whether
   * it is durable; if not, it is stored later.
   */
  async settle(id: string, to: string, why: string | null = null): Promise<boolean> {
    const event: OutboxEvent = why === null ? { t: 'delivered', to } : { t: 'dropped', to, why }
    const entry = this.#entries.get(id)
    if (entry === undefined) return true
    this.#settled(entry, to)
    const owed: Owed = { id, event }
    try {
      // An event must not overtake that of its notice.
      if (this.#owed.length > 0) this.#owed.push(owed)
      else await this.#store(owed)
      return this.#owed.length === 0
    } catch (error) {
      this.#owed.push(owed)
      this.#options.onFault(error)
      return false
    }
  }

  close(): void {
    this.#stopSweep()
    this.#stopStoring()
    this.#follower.close()
  }

  #settled(entry: Entry, to: string): void {
    entry.waiting.delete(to)
    if (entry.waiting.size > 0 || entry.notice === null) return
    this.#waiting.release(callersOf(entry.notice))
    entry.notice = null
  }

  async #store({ id, event }: Owed): Promise<void> {
    const { journal } = this.#options
    if (event.t !== 'queued') {
      await journal.append(id, [event])
      return
    }
    const stored = await journal.append(id, [event], 0)
    // Either another replica has queued the same notice, or the journal still has one of this id that is forgotten.
    const isForgotten = stored === 'conflict' && this.#entries.get(id)?.version === 0
    if (isForgotten) await journal.append(id, [event])
  }

  async #storeOwed(): Promise<void> {
    if (this.#isStoring || this.#owed.length === 0) return
    this.#isStoring = true
    try {
      for (let first = this.#owed[0]; first !== undefined; first = this.#owed[0]) {
        await this.#store(first)
        this.#owed.shift()
      }
    } catch {
      // Reported when it failed first; repeated by the next turn.
    } finally {
      this.#isStoring = false
    }
  }

  /** Returns the notice if it is new and waits. */
  #apply({ key, version, event }: JournalEntry<OutboxEvent>): Entry | null {
    const entry = this.#entries.get(key)
    if (event.t === 'began') {
      this.#beganAt = event.at
      return null
    }
    if (event.t === 'queued' || event.t === 'kept') {
      if (entry !== undefined) {
        entry.version = version
        return null
      }
      const added = { notice: event.notice, waiting: new Set(event.to), at: event.at, version }
      this.#entries.set(key, added)
      if (event.notice !== null) this.#waiting.add(callersOf(event.notice))
      return event.notice === null ? null : added
    }
    if (entry === undefined) return null
    entry.version = version
    this.#settled(entry, event.to)
    return null
  }

  #announce({ notice, waiting }: Entry): void {
    if (notice !== null) this.#options.onQueued?.(notice, [...waiting])
  }

  /** The journal was read anew: events of other replicas were missed. What it does not have yet stays. */
  #replace(entries: readonly JournalEntry<OutboxEvent>[]): void {
    for (const [key, { notice, version }] of this.#entries) {
      if (version === 0) continue
      if (notice !== null) this.#waiting.release(callersOf(notice))
      this.#entries.delete(key)
    }
    for (const entry of entries) this.#apply(entry)
    for (const { id, event } of this.#owed) {
      const entry = this.#entries.get(id)
      if (entry !== undefined && (event.t === 'delivered' || event.t === 'dropped')) this.#settled(entry, event.to)
    }
    for (const entry of this.#entries.values()) this.#announce(entry)
  }

  #sweep(): void {
    const oldest = this.#options.clock.now() - REMEMBER_MS
    let remembered = this.#entries.size - this.#waiting.used
    for (const [id, { notice, at }] of this.#entries) {
      if (notice !== null || (at >= oldest && remembered <= REMEMBERED_MAX)) continue
      this.#entries.delete(id)
      remembered--
    }
    if (this.#follower.events >= COMPACT_AFTER_EVENTS)
      this.#follower.compact(() => this.#snapshot()).catch(this.#options.onFault)
  }

  #snapshot(): JournalSnapshot<OutboxEvent>[] {
    const remaining = [...this.#entries].flatMap(([key, { notice, waiting, at, version }]) => {
      const event: OutboxEvent = { t: 'kept', notice, to: [...waiting], at }
      return version === 0 ? [] : [{ key, version, event }]
    })
    return [{ key: OUTBOX, version: 1, event: { t: 'began', at: this.#beganAt } }, ...remaining]
  }
}

/** Pool shares of a notice: that of its type, and that of its subject. */
function callersOf(notice: Notice): readonly [string, string] {
  const { namespace, agent, budget, server, scope } = notice.data
  const kind = isApproval(notice) ? 'approvals' : 'others'
  const source = isApproval(notice) ? [namespace, agent] : [notice.type, budget, server, scope]
  return [kind, JSON.stringify([kind, ...source])]
}
