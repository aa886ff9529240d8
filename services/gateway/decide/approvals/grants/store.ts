import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import type { GrantEvent, GrantState, SessionGrant } from './events.ts'

/** Events in the journal at which it is compacted; more if more are still needed. */
const COMPACT_AFTER_EVENTS = 1_000
/** Session grants that are stored at a time; each is the decision of a person. */
const GRANTS_MAX = 10_000

/** A session grant with its number of events, on which the next append is conditional. */
export interface GrantEntry {
  readonly id: string
  readonly grant: SessionGrant
  state: GrantState
  version: number
}

export interface GrantStoreOptions {
  readonly journal: Journal<GrantEvent>
  /** Called after each change, of this replica and of others. */
  readonly onChange: (event: GrantEvent['t'], entry: GrantEntry) => void
  /** Called with errors that no caller waits for. */
  readonly onFault: (error: unknown) => void
}

/** Approvals for the rest of a session: a projection of a journal that every replica follows. Ended ones are kept until they would have expired. */
export class GrantStore {
  readonly #options: GrantStoreOptions
  readonly #entries = new Map<string, GrantEntry>()
  /** Active grants by what they cover. */
  readonly #active = new Map<string, GrantEntry>()
  readonly #follower: JournalFollower<GrantEvent>

  private constructor(options: GrantStoreOptions) {
    this.#options = options
    const { journal, onFault } = options
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      replay: (entry) => void this.#apply(entry),
      apply: (entry) => {
        const changed = this.#apply(entry)
        if (changed !== null) options.onChange(entry.event.t, changed)
      },
      replace: (entries) => {
        this.#entries.clear()
        this.#active.clear()
        for (const entry of entries) this.#apply(entry)
      },
    })
  }

  /** Reads the journal, then follows it. Rejects if it cannot be read. */
  static async open(options: GrantStoreOptions): Promise<GrantStore> {
    const store = new GrantStore(options)
    await store.#follower.open()
    return store
  }

  close(): void {
    this.#follower.close()
  }

  get active(): number {
    return this.#active.size
  }

  get isFull(): boolean {
    return this.#entries.size >= GRANTS_MAX
  }

  /** Returns the active grant that covers this scope, or null. */
  find(scope: string): GrantEntry | null {
    return this.#active.get(scope) ?? null
  }

  /** Returns the active grant of an approval, or null. */
  get(id: string): GrantEntry | null {
    const entry = this.#entries.get(id)
    return entry?.state === 'active' ? entry : null
  }

  /** Whether the approval was given for its session before, even if that has ended. */
  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** Active grants, newest first: ids are in the order of creation. */
  list(): readonly GrantEntry[] {
    return [...this.#active.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1))
  }

  /** Stores a new grant. Rejects if the journal fails. */
  async add(id: string, grant: SessionGrant): Promise<void> {
    await this.#options.journal.append(id, [{ t: 'granted', grant }], 0)
  }

  /** Ends an active grant. Resolves with false if it has ended already. Rejects if the journal fails. */
  async end({ id, version }: GrantEntry, event: Extract<GrantEvent, { t: 'lifted' | 'ended' }>): Promise<boolean> {
    return (await this.#options.journal.append(id, [event], version)) !== 'conflict'
  }

  /** Forgets grants that have expired, and compacts the journal when it has grown long. */
  async tidy(now: number): Promise<void> {
    for (const [id, { state, grant }] of this.#entries)
      if (state !== 'active' && grant.expiresAt <= now) this.#entries.delete(id)
    if (this.#follower.events < Math.max(COMPACT_AFTER_EVENTS, 2 * this.#entries.size)) return
    await this.#follower.compact(() =>
      [...this.#entries.values()].map(({ id, version, grant, state }) => ({
        ...{ key: id, version },
        event: { t: 'snapshot', grant, state },
      })),
    )
  }

  /** Applies one event in the journal's order. Returns null if it changes nothing. */
  #apply({ key: id, version, event }: JournalEntry<GrantEvent>): GrantEntry | null {
    const known = this.#entries.get(id)
    if (event.t === 'granted' || event.t === 'snapshot') {
      if (known !== undefined) return null
      const state = event.t === 'snapshot' ? event.state : 'active'
      const entry: GrantEntry = { id, version, grant: event.grant, state }
      this.#entries.set(id, entry)
      if (entry.state === 'active') this.#activate(entry)
      return entry
    }
    if (known === undefined || version <= known.version) return null
    known.version = version
    if (known.state !== 'active') return null
    known.state = event.t
    if (this.#active.get(known.grant.scope) === known) this.#active.delete(known.grant.scope)
    return known
  }

  /** A later grant of the same scope covers what the earlier one did: the earlier one must not come back when the later is lifted. */
  #activate(entry: GrantEntry): void {
    const before = this.#active.get(entry.grant.scope)
    if (before !== undefined) before.state = 'ended'
    this.#active.set(entry.grant.scope, entry)
  }
}
