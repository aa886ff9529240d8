import type { Denial } from '../denial.ts'
import type { Identity } from '../facts.ts'
import type { BindingEvent, BoundTask, Owner } from './events.ts'

/** Maximum number of sessions per task or context. With more senders they count as unknown. */
const SESSIONS_MAX = 32

/** Kinds of ids that agents, servers and model providers return to callers for later use. */
export type BoundKind = 'task' | 'context' | 'content'

export type BoundEvent = Extract<BindingEvent, { readonly t: 'bound' }>

/** Content of an event about a new binding. */
type Bound = Pick<BoundEvent, 'owner' | 'call' | 'at' | 'sessions' | 'task'> & { readonly labels?: readonly string[] }

/** An id, its owner, and what is known about it. */
export class Binding {
  readonly owner: Owner
  readonly call: string
  usedAt: number
  notedAt: number
  /** Number of events of its key. */
  version = 0
  /** Null if the owner is durable. */
  writing: Promise<Denial | null> | null = null
  /** Sessions of the owner that sent into it, or null if unknown. */
  sessions: Set<string> | null
  /** Null for ids of agents and providers. */
  task: BoundTask | null
  /** Taint labels of its content. */
  readonly labels: readonly string[]

  constructor({ owner, call, at, sessions, task, labels }: Bound) {
    this.owner = owner
    this.call = call
    this.task = task ?? null
    this.labels = labels ?? []
    this.usedAt = at
    this.notedAt = at
    this.sessions = sessions === undefined ? null : new Set(sessions)
  }

  sentBy(session: string | undefined): void {
    if (session !== undefined) this.sessions?.add(session)
    if (session === undefined || (this.sessions?.size ?? 0) > SESSIONS_MAX) this.sessions = null
  }

  /** Returns the sessions not yet recorded as senders; undefined stands for unknown ones. */
  missing(sessions: readonly string[] | null): readonly (string | undefined)[] {
    const { sessions: known } = this
    if (known === null) return []
    return sessions === null ? [undefined] : sessions.filter((session) => !known.has(session))
  }
}

/** `<kind>/<callee>/<id>`: ids may contain any character, so they come last. */
export function keyOf(server: string, kind: BoundKind, id: string): string {
  return `${kind}${server.slice(server.indexOf('/'))}/${id}`
}

/** Returns one event with the whole binding. */
export function boundEvent({ usedAt: at, owner, call, sessions, task, labels }: Binding): BoundEvent {
  return {
    ...{ t: 'bound', at, owner, call },
    ...(sessions !== null && { sessions: [...sessions] }),
    ...(task && { task }),
    ...(labels.length > 0 && { labels: [...labels] }),
  }
}

export function ownerOf({ tenant, namespace, agent, user, issuer, session }: Identity, ofSession: boolean): Owner {
  return { tenant, namespace, agent, user, issuer, ...(ofSession && { session }) }
}

export function isOwner(owner: Owner, { tenant, namespace, agent, user, issuer, session }: Owner): boolean {
  if (owner.session !== undefined && owner.session !== session) return false
  // Issuers may use one name for different people. An owner recorded without issuer matches no caller.
  if (owner.user !== user || owner.issuer !== issuer) return false
  return owner.tenant === tenant && owner.namespace === namespace && owner.agent === agent
}
