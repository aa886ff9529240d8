import type { SessionRef } from '../../call/index.ts'

/** An agent as `<namespace>/<agent>`. */
export type AgentKey = string

/** A session as `<namespace>/<agent>/<session>`, as in revocations. */
export type SessionKey = string

/** Stands for any calling session in place of a delegator. */
const ANY_CALLER = '*'
/** In place of a delegator: the session acted for itself. */
const NO_DELEGATOR = '-'

export function sessionKey({ namespace, agent, session }: SessionRef): SessionKey {
  return `${namespace}/${agent}/${session}`
}

/**
 * Returns the places where the labels of a session count if its token has these delegators, nearest first: in responses of its agent to
 * the nearest delegator, in responses of that delegator's agent to the next, and so on; and in responses of each of these agents to
 * callers that delegated to none of its sessions. A place is `<session, * or -> <agent>`.
 */
export function placesOf(self: SessionKey, delegators: readonly SessionKey[]): readonly string[] {
  const chain = [self, ...delegators]
  const agents = chain.map((key) => key.slice(0, key.lastIndexOf('/')))
  return [
    ...delegators.map((delegator, at) => `${delegator} ${agents[at]}`),
    ...agents.map((agent) => `${ANY_CALLER} ${agent}`),
    `${NO_DELEGATOR} ${agents.at(-1)}`,
  ]
}

/** The place of a session with more delegators than the bound: it counts for every caller of its agent. */
export function openPlace(self: SessionKey): string {
  return `${NO_DELEGATOR} ${self.slice(0, self.lastIndexOf('/'))}`
}

/** A session whose labels count at places. */
interface PlacedSession {
  placedLabels(): ReadonlyMap<string, readonly string[]>
}

/** Labels at one place with the number of sessions that have each. */
interface LabelCounts {
  sessions: number
  readonly counts: Map<string, number>
}

/**
 * Labels of an agent's sessions by the sessions that they act for, which responses of the agent bring to their caller. Updated with
 * every change of a session, so a lookup costs as much as there are labels.
 */
export class CalleeLabels {
  readonly #places = new Map<string, LabelCounts>()
  readonly #counted = new Map<PlacedSession, ReadonlyMap<string, readonly string[]>>()

  /**
   * Returns the labels of sessions that act for these callers or for themselves, since either may have responded. If no session of the
   * agent acts for a caller, or callers are unknown (null), returns those of all its sessions.
   */
  of(agent: AgentKey, callers: readonly SessionKey[] | null): readonly string[] {
    const acting = (callers ?? []).flatMap((caller) => this.#places.get(`${caller} ${agent}`) ?? [])
    const open = this.#places.get(`${acting.length === 0 ? ANY_CALLER : NO_DELEGATOR} ${agent}`)
    if (acting.length === 0) return open === undefined ? NO_LABELS : [...open.counts.keys()]
    return [...new Set([...acting, ...(open === undefined ? [] : [open])].flatMap(({ counts }) => [...counts.keys()]))]
  }

  /** Updates a changed session. Returns the agents that have more labels than before. */
  update(session: PlacedSession): readonly AgentKey[] {
    const before = this.#counted.get(session) ?? NOWHERE
    const after = session.placedLabels()
    const gained: AgentKey[] = []
    for (const [place, labels] of after) {
      if (before.get(place) === labels) continue
      if (this.#add(place, labels) && place.startsWith(ANY_CALLER)) gained.push(place.slice(ANY_CALLER.length + 1))
    }
    for (const [place, labels] of before) if (after.get(place) !== labels) this.#subtract(place, labels)
    if (after.size === 0) this.#counted.delete(session)
    else this.#counted.set(session, after)
    return gained
  }

  /** Removes a session. */
  forget(session: PlacedSession): void {
    for (const [place, labels] of this.#counted.get(session) ?? NOWHERE) this.#subtract(place, labels)
    this.#counted.delete(session)
  }

  /** Returns whether the place gained a label. */
  #add(name: string, labels: readonly string[]): boolean {
    const place = this.#places.getOrInsertComputed(name, () => ({ sessions: 0, counts: new Map<string, number>() }))
    const before = place.counts.size
    place.sessions++
    for (const label of labels) place.counts.set(label, (place.counts.get(label) ?? 0) + 1)
    return place.counts.size > before
  }

  #subtract(name: string, labels: readonly string[]): void {
    const place = this.#places.get(name)
    if (place === undefined) return
    for (const label of labels) {
      const left = (place.counts.get(label) ?? 0) - 1
      if (left > 0) place.counts.set(label, left)
      else place.counts.delete(label)
    }
    if (--place.sessions === 0) this.#places.delete(name)
  }
}

const NO_LABELS: readonly string[] = []
const NOWHERE: ReadonlyMap<string, readonly string[]> = new Map()
