import { isTerminal, type Resource } from '@plat/resources'

/** How many sessions of each Agent are in no terminal phase; a change costs only what has changed. */
export class SessionCounts {
  /** By `<namespace>/<agent>`. */
  readonly #active = new Map<string, number>()
  /** By `<namespace>/<session>`: the Agent that an active one counts for. */
  readonly #agents = new Map<string, string>()

  /** By `<namespace>/<agent>`; follows every change. */
  get active(): ReadonlyMap<string, number> {
    return this.#active
  }

  /** Notes that a session has changed; undefined: it is gone. Returns the Agents whose count may have changed. */
  see(key: string, session: Resource<'AgentSession'> | undefined): readonly string[] {
    const before = this.#agents.get(key)
    const isActive = session !== undefined && !isTerminal(session.status?.phase)
    const now = isActive ? `${session.metadata.namespace}/${session.spec.agentRef}` : undefined
    if (before === now) return []
    if (now === undefined) this.#agents.delete(key)
    else this.#agents.set(key, now)
    if (before !== undefined) this.#add(before, -1)
    if (now !== undefined) this.#add(now, 1)
    return [before, now].filter((agent) => agent !== undefined)
  }

  #add(agent: string, change: number): void {
    const count = (this.#active.get(agent) ?? 0) + change
    if (count === 0) this.#active.delete(agent)
    else this.#active.set(agent, count)
  }
}
