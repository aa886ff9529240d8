import type { SessionRef } from '../../call/index.ts'
import type { TaintedSession } from './session.ts'

/** Sessions by the three names of each: maps within maps, so that no call has to put a key together. */
export class ByCaller {
  readonly #namespaces = new Map<string, Map<string, Map<string, TaintedSession>>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get({ namespace, agent, session }: SessionRef): TaintedSession | null {
    return this.#namespaces.get(namespace)?.get(agent)?.get(session) ?? null
  }

  add(one: TaintedSession): void {
    const { namespace, agent, session } = one.caller
    const agents = this.#namespaces.getOrInsertComputed(namespace, () => new Map())
    agents.getOrInsertComputed(agent, () => new Map()).set(session, one)
    this.#size++
  }

  delete({ caller: { namespace, agent, session } }: TaintedSession): void {
    const agents = this.#namespaces.get(namespace)
    const sessions = agents?.get(agent)
    if (agents === undefined || sessions === undefined || !sessions.delete(session)) return
    this.#size--
    if (sessions.size === 0) agents.delete(agent)
    if (agents.size === 0) this.#namespaces.delete(namespace)
  }

  *[Symbol.iterator](): Generator<TaintedSession> {
    for (const agents of this.#namespaces.values()) for (const sessions of agents.values()) yield* sessions.values()
  }
}
