import { isObject, type PoolObserver, poolTable, type SharedPool, watchedPool } from '@plat/core'
import { isUsageBesideCalls } from '../../call/index.ts'

/** Maximum number of listed sessions, in total and per agent; beyond, those that were idle for longest are forgotten. */
export const MAX_SESSIONS = poolTable.listed_sessions.total
export const MAX_SESSIONS_OF_AGENT = poolTable.listed_sessions.shares[0].max

/** Name of a session, unique only within its agent. */
export interface SessionName {
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** A session, as derived from the records of its calls. */
export interface Session extends SessionName {
  /** Tenant of its calls, where its namespace can be of another one by now. */
  readonly tenant: string
  /** Null if it acts for no user. */
  user: string | null
  groups: readonly string[]
  tier: string
  /** Times of the first and last record, in milliseconds since the epoch. */
  startedAt: number
  lastActivity: number
  /** Finished calls, including refused ones. */
  calls: number
  denied: number
  /** Millionths of the pricing currency. */
  spentMicros: number
}

/** A ledger record. */
export type SessionRecord = Readonly<Record<string, unknown>>

/**
 * Sessions derived from records. The last record of a call is a refusal (`decision`) or an `outcome`: the book reads no
 * other, so that each call counts once.
 */
export class SessionBook {
  /** By the session's name, which several agents may use. */
  readonly #byName = new Map<string, Session[]>()
  readonly #pool: SharedPool

  readonly #onBegun: (session: SessionName) => void

  /** `onBegun` is called with each session that was not in the book. */
  constructor(observer?: PoolObserver, onBegun: (session: SessionName) => void = () => {}) {
    this.#onBegun = onBegun
    this.#pool = watchedPool({ name: 'listed_sessions', observer })
  }

  get size(): number {
    return this.#pool.used
  }

  /** Applies a record; `at` in milliseconds since the epoch. `tenant`: of the caller. */
  see(rec: SessionRecord, at: number, tenant = ''): void {
    const { kind, namespace, agent, session } = rec
    if (kind !== 'outcome' && kind !== 'decision') return
    if (typeof namespace !== 'string' || typeof agent !== 'string' || typeof session !== 'string') return
    const name = { tenant, namespace, agent, session }
    const entry = this.#find(name) ?? this.#begin(name, at)
    if (typeof rec.costMicros === 'number') entry.spentMicros += rec.costMicros
    // Usage of sandboxes and batches is not a call of the session and no activity.
    if (isUsageBesideCalls(rec.op)) return
    entry.calls++
    if (rec.action === 'deny') entry.denied++
    if (at < entry.startedAt) entry.startedAt = at
    // A record read again after a restart may be older than the known ones.
    if (at < entry.lastActivity) return
    entry.lastActivity = at
    entry.user = typeof rec.user === 'string' ? rec.user : null
    if (!isObject(rec.facts)) return
    if (typeof rec.facts.tier === 'string') entry.tier = rec.facts.tier
    if (isTexts(rec.facts.groups)) entry.groups = rec.facts.groups
  }

  /** Returns undefined if no record names it. */
  get(name: SessionName & { readonly tenant?: string }): Readonly<Session> | undefined {
    return this.#find({ tenant: '', ...name })
  }

  *sessions(): Iterable<Session> {
    for (const entries of this.#byName.values()) yield* entries
  }

  #find({ tenant, namespace, agent, session }: SessionName & { readonly tenant: string }): Session | undefined {
    const entries = this.#byName.get(session)
    if (entries === undefined) return undefined
    for (const entry of entries)
      if (entry.agent === agent && entry.namespace === namespace && entry.tenant === tenant) return entry
    return undefined
  }

  #begin(name: SessionName & { readonly tenant: string }, at: number): Session {
    const bound = this.#pool.acquire(agentIn(name))
    if (bound !== null) {
      this.#forgetHalf(bound === 'share' ? name : null)
      this.#pool.add(agentIn(name))
    }
    const nothing = { user: null, groups: [], tier: '', calls: 0, denied: 0, spentMicros: 0 }
    const entry: Session = { ...name, ...nothing, startedAt: at, lastActivity: at }
    this.#byName.getOrInsertComputed(name.session, () => []).push(entry)
    this.#onBegun(name)
    return entry
  }

  /**
   * Forgets half at once, of one agent or of all: a search for the oldest one would cost each new session a walk over all of them. Of
   * all, agents keep their newest in turns, so that one with many sessions loses them first.
   */
  #forgetHalf(of: Pick<SessionName, 'namespace' | 'agent'> | null): void {
    const all = [...this.sessions()]
    const own = of === null ? all : all.filter((one) => one.agent === of.agent && one.namespace === of.namespace)
    const ranks = new Map<string, number>()
    const ranked = own
      .toSorted((one, other) => other.lastActivity - one.lastActivity)
      .map((session) => {
        const agent = agentIn(session)
        const rank = ranks.get(agent) ?? 0
        ranks.set(agent, rank + 1)
        return { session, rank }
      })
    const forgotten = ranked.toSorted((one, other) => one.rank - other.rank).slice(Math.floor(own.length / 2))
    for (const { session } of forgotten) this.#forget(session)
  }

  #forget(session: Session): void {
    const left = (this.#byName.get(session.session) ?? []).filter((one) => one !== session)
    if (left.length > 0) this.#byName.set(session.session, left)
    else this.#byName.delete(session.session)
    this.#pool.release(agentIn(session))
  }
}

function agentIn({ namespace, agent }: Pick<SessionName, 'namespace' | 'agent'>): string {
  return `${namespace}/${agent}`
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}
