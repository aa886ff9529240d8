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
  version: number
}

export interface OutboxOptions {
  readonly journal: Journal<OutboxEvent>
  readonly clock: Clock
  /** Called when the journal cannot be written: notices then wait in memory only. */
  readonly onFault: (error: unknown) => void
  readonly observer?: PoolObserver | undefined
}

/** Queue of notices: durable before they are sent, and remembered afterwards so that none is queued twice. */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #entries = new Map<string, Entry>()
  readonly #follower: JournalFollower<OutboxEvent>
  readonly #stopSweep: () => void
  #beganAt = 0
  readonly #waiting: SharedPool

  private constructor(options: OutboxOptions) {
    this.#options = options
    this.#waiting = watchedPool({ name: 'notifications', observer: options.observer })
    const { journal, onFault } = options
    // After the start the entries are ahead of the journal.
    this.#follower = new JournalFollower({ journal, onFault, replay: (entry) => this.#apply(entry), apply: () => {} })
    this.#stopSweep = options.clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Rejects when the journal cannot be read. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options)
    const { journal, clock } = options
    await outbox.#follower.read()
    if (outbox.#beganAt === 0) {
      outbox.#beganAt = clock.now()
      await journal.append(OUTBOX, [{ t: 'began', at: outbox.#beganAt }])
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

  /** Resolves when durable; false if too many wait and it is dropped. Rejects if the journal fails; it then waits in memory. */
  async put(notice: Notice, to: readonly string[]): Promise<boolean> {
    if (this.#waiting.acquire(callersOf(notice)) !== null) return false
    const at = this.#options.clock.now()
    this.#entries.set(notice.id, { notice, waiting: new Set(to), at, version: 1 })
    await this.#options.journal.append(notice.id, [{ t: 'queued', notice, to: [...to], at }])
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

  /** Marks a notice as delivered, or as dropped if there is a `why`. A crash before this is durable causes one more delivery. */
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
    this.#follower.close()
  }

  #settled(entry: Entry, to: string): void {
    entry.waiting.delete(to)
    if (entry.waiting.size > 0 || entry.notice === null) return
    this.#waiting.release(callersOf(entry.notice))
    entry.notice = null
  }

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
    if (this.#follower.events >= COMPACT_AFTER_EVENTS)
      this.#follower.compact(() => this.#snapshot()).catch(this.#options.onFault)
  }

  #snapshot(): JournalSnapshot<OutboxEvent>[] {
    const remaining = [...this.#entries].map(([key, { notice, waiting, at, version }]) => {
      const event: OutboxEvent = { t: 'kept', notice, to: [...waiting], at }
      return { key, version, event }
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
