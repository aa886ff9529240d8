import type { Clock } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { MAX_REVOCATIONS, type Revocation, type RevocationEvent } from './format.ts'
import { RevocationList } from './list.ts'

/** Obsolete events after which the journal is compacted. */
const COMPACT_AFTER_EVENTS = 1_000

export interface StoredRevocationsOptions {
  readonly journal: Journal<RevocationEvent>
  readonly clock: Clock
  /** Called when an entry comes into force, except for those loaded at start. Returns how many live calls it ended. */
  readonly onRevoked: (revocation: Revocation) => number
  /** Called when an entry was lifted, on any replica. */
  readonly onLifted: (revocation: Revocation) => void
  /** Called when the journal cannot be written and no caller waits for the result. */
  readonly onFault: (error: unknown) => void
}

export class ListFullError extends Error {}

export interface Added {
  /** Live calls that the entry ended. */
  readonly cut: number
  /** Null if the entry is durable. Otherwise the journal's error; the entry is in force until this process ends. */
  readonly fault: unknown
}

/**
 * Break-glass revocations. Each change is appended to the journal first, and the list is derived from the events, so that a restart
 * restores it.
 */
export class StoredRevocations {
  readonly list = new RevocationList()
  readonly #parts: StoredRevocationsOptions
  readonly #follower: JournalFollower<RevocationEvent>
  /** Numbers of ended calls that callers of `add` wait for, by id. */
  readonly #cut = new Map<string, number>()
  /** Entries in force that the journal could not store. */
  readonly #unkept = new Set<string>()

  constructor(parts: StoredRevocationsOptions) {
    this.#parts = parts
    const { journal, onFault } = parts
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      replay: (entry) => this.#apply(entry),
      apply: (entry) => this.#follow(entry),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal. Rejects if it cannot be read: an incomplete history revokes too few. */
  async open(): Promise<void> {
    await this.#follower.open()
    this.sweep()
  }

  /**
   * Adds an entry. When it resolves, the entry is in force, and durable unless the journal failed: an emergency revocation must work
   * without a disk. Rejects only with `ListFullError`.
   */
  async add(revocation: Revocation): Promise<Added> {
    const { id } = revocation
    if (this.list.size + this.#cut.size >= MAX_REVOCATIONS) throw new ListFullError(`${MAX_REVOCATIONS} are in force`)
    this.#cut.set(id, 0)
    try {
      const version = await this.#parts.journal.append(id, [{ t: 'revoked', revocation }], 0)
      if (version === 'conflict') throw new Error(`duplicate id ${id}`)
      return { cut: this.#cut.get(id) ?? 0, fault: null }
    } catch (fault) {
      this.#unkept.add(id)
      this.list.add(revocation)
      this.#enforce(revocation)
      return { cut: this.#cut.get(id) ?? 0, fault }
    } finally {
      this.#cut.delete(id)
    }
  }

  /**
   * Lifts an entry. Returns false if it does not exist or was just lifted. Rejects if the journal fails; the entry then remains in
   * force.
   */
  async lift(id: string): Promise<boolean> {
    const revocation = this.list.get(id)
    if (revocation === null) return false
    if (!this.#unkept.delete(id)) return (await this.#parts.journal.append(id, [{ t: 'lifted' }], 1)) !== 'conflict'
    this.list.remove(id)
    this.#parts.onLifted(revocation)
    return true
  }

  /** Removes expired entries, and compacts the journal when most of it is obsolete. */
  sweep(): void {
    this.list.forgetExpired(this.#parts.clock.now())
    for (const id of this.#unkept) if (this.list.get(id) === null) this.#unkept.delete(id)
    const needless = this.#follower.events - this.list.size
    if (needless >= COMPACT_AFTER_EVENTS && needless > this.list.size)
      this.#follower.compact(() => this.#snapshot()).catch(this.#parts.onFault)
  }

  close(): void {
    this.#follower.close()
  }

  #follow(entry: JournalEntry<RevocationEvent>): void {
    const before = this.list.get(entry.key)
    this.#apply(entry)
    if (entry.event.t === 'revoked') this.#enforce(entry.event.revocation)
    else if (before !== null) this.#parts.onLifted(before)
  }

  /** Rebuilds the list from the journal. Entries that it could not store remain in force. */
  #replace(entries: readonly JournalEntry<RevocationEvent>[]): void {
    const before = this.list.inForce(Number.NEGATIVE_INFINITY).filter(({ id }) => !this.#unkept.has(id))
    for (const { id } of before) this.list.remove(id)
    for (const entry of entries) this.#apply(entry)
    const known = new Set(before.map(({ id }) => id))
    for (const { event } of entries) {
      if (event.t !== 'revoked' || known.has(event.revocation.id)) continue
      if (this.list.get(event.revocation.id) !== null) this.#enforce(event.revocation)
    }
    for (const revocation of before) if (this.list.get(revocation.id) === null) this.#parts.onLifted(revocation)
  }

  #apply({ key, event }: JournalEntry<RevocationEvent>): void {
    if (event.t === 'revoked') this.list.add(event.revocation)
    else this.list.remove(key)
  }

  #enforce(revocation: Revocation): void {
    const cut = this.#parts.onRevoked(revocation)
    if (this.#cut.has(revocation.id)) this.#cut.set(revocation.id, cut)
  }

  #snapshot() {
    return this.list.inForce(this.#parts.clock.now()).map((revocation) => ({
      key: revocation.id,
      version: 1,
      event: { t: 'revoked', revocation } as const,
    }))
  }
}
