import { type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import type { SessionRef } from '../../call/index.ts'
import { TaintedSession } from './session.ts'

export interface ByCallerOptions {
  /** Sessions of all agents, and of one. Default: the row of the pool. One more is refused: none is forgotten before its time. */
  readonly sessions?: { readonly total: number; readonly share: number } | undefined
  readonly observer?: PoolObserver | undefined
}

/** Sessions by the three names of each: maps within maps, so that no call has to put a key together. */
export class ByCaller {
  readonly #namespaces = new Map<string, Map<string, Map<string, TaintedSession>>>()
  readonly #pool: SharedPool

  constructor({ sessions, observer }: ByCallerOptions) {
    const bounds = sessions && { total: sessions.total, shares: [sessions.share] }
    this.#pool = watchedPool({ name: 'tainted_sessions', ...bounds, observer })
  }

  get size(): number {
    return this.#pool.used
  }

  get isHalfEmpty(): boolean {
    return this.size < this.#pool.total / 2
  }

  /** Null: there are too many sessions, of all or of this agent. */
  begin(session: SessionRef): TaintedSession | null {
    return this.#pool.acquire(agentIn(session)) === null ? this.#insert(session) : null
  }

  /** Adds a session that another replica or an earlier process admitted. */
  restore(session: SessionRef): TaintedSession {
    this.#pool.add(agentIn(session))
    return this.#insert(session)
  }

  get({ namespace, agent, session }: SessionRef): TaintedSession | null {
    return this.#namespaces.get(namespace)?.get(agent)?.get(session) ?? null
  }

  #insert({ namespace, agent, session }: SessionRef): TaintedSession {
    const begun = new TaintedSession({ namespace, agent, session })
    const agents = this.#namespaces.getOrInsertComputed(namespace, () => new Map())
    agents.getOrInsertComputed(agent, () => new Map()).set(session, begun)
    return begun
  }

  delete({ caller: { namespace, agent, session } }: TaintedSession): void {
    const agents = this.#namespaces.get(namespace)
    const sessions = agents?.get(agent)
    if (agents === undefined || sessions === undefined || !sessions.delete(session)) return
    this.#pool.release(agentIn({ namespace, agent }))
    if (sessions.size === 0) agents.delete(agent)
    if (agents.size === 0) this.#namespaces.delete(namespace)
  }

  *[Symbol.iterator](): Generator<TaintedSession> {
    for (const agents of this.#namespaces.values()) for (const sessions of agents.values()) yield* sessions.values()
  }
}

function agentIn({ namespace, agent }: Pick<SessionRef, 'namespace' | 'agent'>): string {
  return `${namespace}/${agent}`
}
