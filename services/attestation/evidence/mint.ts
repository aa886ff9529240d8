import type { Clock } from '@plat/core'
import { CodedRefusalError } from '@plat/http/endpoints'
import type { Release } from '../release/release.ts'
import type { Broker, Minted, Verdict } from './broker.ts'
import type { EvidenceRequest } from './request.ts'

export interface MintParts {
  readonly broker: Broker
  readonly clock: Clock
  readonly tokenTtlMs: number
}

/** Has the broker verify the evidence and mint the session's token for the key. The token lives no longer than what is left of the session. */
export async function mintFor(
  { broker, clock, tokenTtlMs }: MintParts,
  release: Release,
  { proof, jkt }: Pick<EvidenceRequest, 'proof'> & { readonly jkt: string },
): Promise<Minted> {
  const { session, endsAt } = release
  const asked =
    typeof session.ttlSeconds === 'number' && session.ttlSeconds > 0 ? session.ttlSeconds : tokenTtlMs / 1000
  const left = endsAt === null ? asked : Math.floor((endsAt - clock.now()) / 1000)
  const ttlSeconds = Math.floor(Math.min(asked, left))
  if (ttlSeconds < 1) throw new CodedRefusalError(404, 'unknown_release', 'the session is over')
  return broker.mint({ ...session, ttlSeconds, dpopJkt: jkt, proof })
}

/** When two thirds of a token's life have passed, in milliseconds since the epoch: there is time to try again. */
export function renewalTime({ expiresAt }: Minted, now: number): number {
  return now + Math.floor(((Date.parse(expiresAt) - now) * 2) / 3)
}

/** Throws `session_revoked` when the broker says so of a token, 503 when it cannot tell. Answers null, or another fault of the token. */
export function refuseRevoked(verdict: Verdict): string | null {
  if ('claims' in verdict) return null
  // The broker's words of revocation (docs/spec/broker-api.md, "States"): a suspended session comes back, so it is not ended for it.
  if (verdict.error === 'token is revoked')
    throw new CodedRefusalError(403, 'session_revoked', 'the session is revoked')
  if (verdict.error === 'token is suspended') {
    throw new CodedRefusalError(503, 'unavailable', 'the session is suspended: ask again', { 'retry-after': '10' })
  }
  return verdict.error
}
