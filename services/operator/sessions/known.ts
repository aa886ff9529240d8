import type { Resource } from '@plat/resources'
import type { Mirror } from '../kube/mirror.ts'

type Session = Resource<'AgentSession'>

/** Sessions as they are: as the mirror has them, or as they were written since, until the mirror has heard of that. */
export class KnownSessions {
  readonly #mirror: Mirror
  /** By `<namespace>/<name>`. */
  readonly #written = new Map<string, Session>()

  constructor(mirror: Mirror) {
    this.#mirror = mirror
  }

  get(key: string): Session | undefined {
    const seen = this.#mirror.find('AgentSession', key)
    return seen === undefined ? undefined : this.#newest(key, seen)
  }

  list(): readonly Session[] {
    return this.#mirror
      .list('AgentSession')
      .map((seen) => this.#newest(`${seen.metadata.namespace}/${seen.metadata.name}`, seen))
  }

  /** The other sessions of its Agent. */
  siblingsOf({ metadata, spec }: Session): readonly Session[] {
    return this.list().filter(
      (other) =>
        other.metadata.namespace === metadata.namespace &&
        other.spec.agentRef === spec.agentRef &&
        other.metadata.uid !== metadata.uid,
    )
  }

  wrote(key: string, session: Session): void {
    this.#written.set(key, session)
  }

  forget(key: string): void {
    this.#written.delete(key)
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

function statusIn({ status }: Session): Pick<Session, 'status'> {
  return status === undefined ? {} : { status }
}

/** Versions of an API server are numbers that grow. */
function isOlder(a: string, b: string): boolean {
  return /^\d+$/.test(a) && /^\d+$/.test(b) && BigInt(a) < BigInt(b)
}
