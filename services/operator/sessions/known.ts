import { isTerminal, type Resource } from '@plat/resources'
import type { Mirror } from '../kube/mirror.ts'
import { keyOf } from '../render/declared.ts'
import { AgentQuota } from './life/quota.ts'

type Session = Resource<'AgentSession'>

/** Sessions that have not ended, of one Agent. */
interface Live {
  readonly keys: Set<string>
  readonly quota: AgentQuota
}

/**
 * Sessions as they are: as the mirror has them, or as they were written since, until the mirror has caught up. Those that have not ended are
 * indexed by their Agent. Callers report every change by `see` or `wrote`.
 */
export class KnownSessions {
  readonly #mirror: Mirror
  /** By `<namespace>/<name>`. */
  readonly #written = new Map<string, Session>()
  /** By `<namespace>/<agent>`. */
  readonly #live = new Map<string, Live>()
  /** Agents of the live sessions, by `<namespace>/<name>` of the session. */
  readonly #agents = new Map<string, string>()

  constructor(mirror: Mirror) {
    this.#mirror = mirror
    for (const session of mirror.list('AgentSession')) this.see(keyOf(session))
  }

  get(key: string): Session | undefined {
    const seen = this.#mirror.find('AgentSession', key)
    return seen === undefined ? undefined : this.#newest(key, seen)
  }

  list(): readonly Session[] {
    return this.#mirror.list('AgentSession').map((seen) => this.#newest(keyOf(seen), seen))
  }

  live(): Iterable<string> {
    return this.#agents.keys()
  }

  /** Keys of the sessions of an Agent (`<namespace>/<name>`) that have not ended. */
  liveOf(agent: string): Iterable<string> {
    return this.#live.get(agent)?.keys ?? []
  }

  /** Is there room for a session that has not begun, beside the others of its Agent (docs/spec/crds.md, `maxConcurrentSessions`)? */
  hasRoom(session: Session, max: number): boolean {
    return this.#live.get(agentOf(session))?.quota.hasRoom(session, max) !== false
  }

  /** Keys of the sessions of an Agent that wait for room and have it now, the oldest first. Without a limit none waits. */
  admissible(agent: string, max: number): readonly string[] {
    return this.#live.get(agent)?.quota.admissible(max) ?? []
  }

  /** Updates the index for a session that has changed. Returns its Agents, before and now, whose waiting sessions may have room since. */
  see(key: string): readonly string[] {
    const session = this.get(key)
    const before = this.#agents.get(key)
    const now = session === undefined || isTerminal(session.status?.phase) ? undefined : agentOf(session)
    const freed = before !== undefined && before !== now ? [before] : []
    if (before !== undefined && before !== now) this.#drop(before, key)
    if (session === undefined || now === undefined) return freed
    this.#agents.set(key, now)
    const live = this.#live.get(now) ?? { keys: new Set(), quota: new AgentQuota() }
    this.#live.set(now, live)
    live.keys.add(key)
    return live.quota.see(key, session) ? [...freed, now] : freed
  }

  /** Like `see`, for a session as it was just written. */
  wrote(key: string, session: Session): readonly string[] {
    this.#written.set(key, session)
    return this.see(key)
  }

  /** Whether a session had begun when it was last written, however it is now. */
  hadBegun(key: string): boolean {
    return this.#written.get(key)?.status?.startedAt !== undefined
  }

  forget(key: string): void {
    this.#written.delete(key)
  }

  #drop(agent: string, key: string): void {
    this.#agents.delete(key)
    const live = this.#live.get(agent)
    live?.keys.delete(key)
    live?.quota.forget(key)
    if (live?.keys.size === 0) this.#live.delete(agent)
  }

  #newest(key: string, seen: Session): Session {
    const written = this.#written.get(key)
    if (written === undefined) return seen
    const isHeard = !isOlder(seen.metadata.resourceVersion, written.metadata.resourceVersion)
    if (!isHeard && written.metadata.uid === seen.metadata.uid)
      return { ...seen, metadata: { ...seen.metadata }, ...statusIn(written) }
    this.#written.delete(key)
    return seen
  }
}

/** `<namespace>/<agent>` of a session. */
export function agentOf({ metadata, spec }: Session): string {
  return `${metadata.namespace}/${spec.agentRef}`
}

function statusIn({ status }: Session): Pick<Session, 'status'> {
  return status === undefined ? {} : { status }
}

/** Versions of an API server are numbers that grow. */
function isOlder(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b)
}
