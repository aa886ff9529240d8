import { isObject } from '@plat/tokens'
import { SANDBOX_USAGE } from '../../call/index.ts'

/** Sessions that are listed; beyond, those that were idle for longest are forgotten. */
export const MAX_SESSIONS = 20_000

/** Which session: a name stands for itself within one agent only. */
export interface SessionName {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** What the records of calls say of one session. */
export interface Session extends SessionName {
  /** Null: it acts for nobody. */
  user: string | null
  groups: readonly string[]
  tier: string
  /** Of the first and of the last record, in milliseconds since the epoch. */
  startedAt: number
  lastActivity: number
  /** Calls that are over, refused ones with them. */
  calls: number
  denied: number
  /** Millionths of the currency of prices. */
  spentMicros: number
}

/** A record as the ledger takes it or holds it. */
export type SessionRecord = Readonly<Record<string, unknown>>

/**
 * The sessions that records tell of. A record is the last of its call when it is a refusal (`decision`) or an `outcome`: the book looks at no
 * other, so that each call counts once.
 */
export class SessionBook {
  /** By the session's name; those of several agents may share one. */
  readonly #byName = new Map<string, Session[]>()
  #count = 0

  get size(): number {
    return this.#count
  }

  /** Takes one record into account; `at` in milliseconds since the epoch. */
  see(rec: SessionRecord, at: number): void {
    const { kind, namespace, agent, session } = rec
    if (kind !== 'outcome' && kind !== 'decision') return
    if (typeof namespace !== 'string' || typeof agent !== 'string' || typeof session !== 'string') return
    const entry = this.#find(namespace, agent, session) ?? this.#begin({ namespace, agent, session, at })
    if (typeof rec.costMicros === 'number') entry.spentMicros += rec.costMicros
    // What its sandbox used is no call of the session, and no sign of life.
    if (rec.op === SANDBOX_USAGE) return
    entry.calls++
    if (rec.action === 'deny') entry.denied++
    if (at < entry.startedAt) entry.startedAt = at
    // What is read again after a restart may be older than what has come since.
    if (at < entry.lastActivity) return
    entry.lastActivity = at
    entry.user = typeof rec.user === 'string' ? rec.user : null
    if (!isObject(rec.facts)) return
    if (typeof rec.facts.tier === 'string') entry.tier = rec.facts.tier
    if (isTexts(rec.facts.groups)) entry.groups = rec.facts.groups
  }

  /** Undefined: no record tells of it. */
  get({ namespace, agent, session }: SessionName): Readonly<Session> | undefined {
    return this.#find(namespace, agent, session)
  }

  *sessions(): Iterable<Session> {
    for (const entries of this.#byName.values()) yield* entries
  }

  #find(namespace: string, agent: string, session: string): Session | undefined {
    const entries = this.#byName.get(session)
    if (entries === undefined) return undefined
    for (const entry of entries) if (entry.agent === agent && entry.namespace === namespace) return entry
    return undefined
  }

  #begin({ at, ...name }: SessionName & { readonly at: number }): Session {
    if (this.#count >= MAX_SESSIONS) this.#forgetHalf()
    const nothing = { user: null, groups: [], tier: '', calls: 0, denied: 0, spentMicros: 0 }
    const entry: Session = { ...name, ...nothing, startedAt: at, lastActivity: at }
    this.#byName.getOrInsertComputed(name.session, () => []).push(entry)
    this.#count++
    return entry
  }

  /** Half at once: to look for the one that was idle for longest would cost each new session a walk over all. */
  #forgetHalf(): void {
    const newest = [...this.sessions()].toSorted((one, other) => other.lastActivity - one.lastActivity)
    const kept = newest.slice(0, MAX_SESSIONS / 2)
    this.#byName.clear()
    this.#count = kept.length
    for (const entry of kept) this.#byName.getOrInsertComputed(entry.session, () => []).push(entry)
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}
