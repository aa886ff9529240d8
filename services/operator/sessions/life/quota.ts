import { isTerminal, type Resource } from '@plat/resources'

type Session = Resource<'AgentSession'>

/** A session that waits, and its place among those that do: the oldest comes first. */
interface Waiting {
  readonly key: string
  readonly place: string
}

/**
 * The sessions of one Agent that count for `maxConcurrentSessions` (docs/spec/crds.md): those that run, and those that wait for room. A change costs
 * a binary search, however many sessions wait.
 */
export class AgentQuota {
  readonly #active = new Set<string>()
  /** Sorted by place. */
  readonly #waiting: Waiting[] = []
  /** By key: the place of a session that waits. */
  readonly #places = new Map<string, string>()

  /** Notes how a session is now. Returns whether others that wait may have room since. */
  see(key: string, session: Session): boolean {
    const wasActive = this.#active.has(key)
    const before = this.#places.get(key)
    const active = isActive(session)
    const place = isWaiting(session) ? placeOf(session) : undefined
    if (active) this.#active.add(key)
    else this.#active.delete(key)
    if (place === before) return wasActive && !active
    this.#remove(key)
    if (place !== undefined) this.#insert(key, place)
    // One that has just begun to wait may have missed that room was made.
    return !active
  }

  forget(key: string): void {
    this.#active.delete(key)
    this.#remove(key)
  }

  /** Is there room for a session that has not begun, beside all others? `max` 0: there is no limit. */
  hasRoom(session: Session, max: number): boolean {
    return max === 0 || this.#active.size + this.#indexOf(placeOf(session)) < max
  }

  /** Keys of the sessions that wait and have room, the oldest first. */
  admissible(max: number): readonly string[] {
    return this.#waiting.slice(0, Math.max(0, max - this.#active.size)).map(({ key }) => key)
  }

  #insert(key: string, place: string): void {
    this.#places.set(key, place)
    this.#waiting.splice(this.#indexOf(place), 0, { key, place })
  }

  #remove(key: string): void {
    const place = this.#places.get(key)
    if (place === undefined) return
    this.#places.delete(key)
    this.#waiting.splice(this.#indexOf(place), 1)
  }

  /** How many sessions wait in front of this place. */
  #indexOf(place: string): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#waiting[middle]?.place ?? '') < place) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Has the session begun, and not ended? */
function isActive({ status }: Session): boolean {
  return status?.startedAt !== undefined && !isTerminal(status.phase)
}

/** A session that waits for something else than the quota does not keep younger ones out. */
function isWaiting({ spec, status }: Session): boolean {
  if (status?.startedAt !== undefined || isTerminal(status?.phase) || spec.suspend === true || spec.cancel === true)
    return false
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return ready === undefined || ready.reason === 'QuotaExceeded'
}

/** By age, then by name; names of one Agent's sessions are unique. */
function placeOf({ metadata }: Session): string {
  return `${metadata.creationTimestamp} ${metadata.name}`
}
