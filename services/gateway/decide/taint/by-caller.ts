import { type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import type { SessionRef } from '../../call/index.ts'
import { TaintedSession } from './session.ts'

export interface ByCallerOptions {
  /** Bounds of sessions, total and per agent. Default: the limits of the pool. Further sessions are refused; none is evicted. */
  readonly sessions?: { readonly total: number; readonly share: number } | undefined
  readonly observer?: PoolObserver | undefined
}

/** Sessions by namespace, agent and session name, in nested maps so that no call has to build a key. */
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

  /** Returns null if there are too many sessions, in total or of this agent. */
  begin(session: SessionRef): TaintedSession | null {
    return this.#pool.acquire(agentIn(session)) === null ? this.#insert(session) : null
  }

  /** Adds a session admitted by another replica or an earlier process. */
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
