import type { Resource } from '@plat/resources'
import type { RevocationEntry } from '../render/limits/revocations.ts'

/** How a session is revoked, and when that ends (milliseconds since the epoch; null: not by itself). */
export interface Revoked {
  readonly how: 'revoke' | 'suspend' | null
  readonly until: number | null
}

/** AgentRevocations by their target: finding those of a session costs the same however many there are. */
export class RevocationIndex {
  /** By `<member of the target>:<value>`. */
  readonly #entries = new Map<string, RevocationEntry[]>()

  constructor(entries: readonly RevocationEntry[]) {
    for (const entry of entries) {
      for (const key of keysOfTarget(entry.target)) {
        const known = this.#entries.get(key)
        if (known === undefined) this.#entries.set(key, [entry])
        else known.push(entry)
      }
    }
  }

  /** The entry that applies to a session; a revocation takes precedence over a suspension. The gateway handles entries for tenants. */
  of(session: Resource<'AgentSession'>, now: number): Revoked {
    const mine = keysOfSession(session)
      .flatMap((key) => this.#entries.get(key) ?? [])
      .filter((entry) => (endOf(entry) ?? Number.POSITIVE_INFINITY) > now)
    if (mine.length === 0) return { how: null, until: null }
    const until = mine.map(endOf).filter((end) => end !== null)
    return {
      how: mine.some(({ mode }) => mode === 'revoke') ? 'revoke' : 'suspend',
      until: until.length === 0 ? null : Math.min(...until),
    }
  }

  /** Returns a test for the sessions for which this index and another one have different entries. */
  differenceTo(other: RevocationIndex): (session: Resource<'AgentSession'>) => boolean {
    const keys = new Set([...this.#entries.keys(), ...other.#entries.keys()].filter((key) => !this.#isSame(other, key)))
    return (session) => keys.size > 0 && keysOfSession(session).some((key) => keys.has(key))
  }

  #isSame(other: RevocationIndex, key: string): boolean {
    const [mine = [], theirs = []] = [this.#entries.get(key), other.#entries.get(key)]
    return mine.length === theirs.length && mine.every((entry, at) => isSameEntry(entry, theirs[at]))
  }
}

function isSameEntry(a: RevocationEntry, b: RevocationEntry | undefined): boolean {
  return a.id === b?.id && a.mode === b.mode && a.expiresAt === b.expiresAt
}

function endOf({ expiresAt }: RevocationEntry): number | null {
  return expiresAt === undefined ? null : Date.parse(expiresAt)
}

function keysOfTarget(target: RevocationEntry['target']): string[] {
  return Object.entries(target).map(([member, value]) => `${member}:${value}`)
}

function keysOfSession({ metadata, spec, status }: Resource<'AgentSession'>): string[] {
  const { namespace, name } = metadata
  const agent = `${namespace}/${spec.agentRef}`
  return [
    ...['all:true', `namespace:${namespace}`, `agent:${agent}`, `session:${agent}/${name}`],
    ...(spec.user === undefined ? [] : [`user:${spec.user}`]),
    ...(status?.jti === undefined ? [] : [`jti:${status.jti}`]),
  ]
}
