import type { Resource } from '@plat/resources'
import type { RevocationEntry } from '../render/limits/revocations.ts'

/** How a session is revoked, and when that ends (milliseconds since the epoch; null: not by itself). */
export interface Revoked {
  readonly how: 'revoke' | 'suspend' | null
  readonly until: number | null
}

/** What AgentRevocations say of a session; a revocation wins over a suspension. Of tenants the operator knows nothing: the gateway does. */
export function revokedBy(
  entries: readonly RevocationEntry[],
  session: Resource<'AgentSession'>,
  now: number,
): Revoked {
  const ends = ({ expiresAt }: RevocationEntry) => (expiresAt === undefined ? null : Date.parse(expiresAt))
  const mine = entries.filter(
    (entry) => means(entry.target, session) && (ends(entry) ?? Number.POSITIVE_INFINITY) > now,
  )
  if (mine.length === 0) return { how: null, until: null }
  const until = mine.map(ends).filter((end) => end !== null)
  return {
    how: mine.some(({ mode }) => mode === 'revoke') ? 'revoke' : 'suspend',
    until: until.length === 0 ? null : Math.min(...until),
  }
}

function means(target: RevocationEntry['target'], { metadata, spec, status }: Resource<'AgentSession'>): boolean {
  const agent = `${metadata.namespace}/${spec.agentRef}`
  return (
    target.all === true ||
    target.namespace === metadata.namespace ||
    target.agent === agent ||
    target.session === `${agent}/${metadata.name}` ||
    (target.user !== undefined && target.user === spec.user) ||
    (target.jti !== undefined && target.jti === status?.jti)
  )
}
