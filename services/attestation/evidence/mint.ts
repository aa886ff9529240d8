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

/** Has the broker verify the evidence and mint the session's token for the key. The token does not outlive the session. */
export async function mintFor(
  { broker, clock, tokenTtlMs }: MintParts,
  release: Release,
  { proof, jkt }: Pick<EvidenceRequest, 'proof'> & { readonly jkt: string },
): Promise<Minted> {
  const { session, endsAt } = release
  const requested =
    typeof session.ttlSeconds === 'number' && session.ttlSeconds > 0 ? session.ttlSeconds : tokenTtlMs / 1000
  const left = endsAt === null ? requested : Math.floor((endsAt - clock.now()) / 1000)
  const ttlSeconds = Math.floor(Math.min(requested, left))
  if (ttlSeconds < 1) throw new CodedRefusalError(404, 'unknown_release', 'the session is over')
  return broker.mint({ ...session, ttlSeconds, dpopJkt: jkt, proof })
}

/** Returns when two thirds of a token's life have passed, in milliseconds since the epoch: enough time remains for retries. */
export function renewalTime({ expiresAt }: Minted, now: number): number {
  return now + Math.floor(((Date.parse(expiresAt) - now) * 2) / 3)
}

/** Throws `session_revoked` when the broker reports the token as revoked, 503 when it cannot decide. Returns another fault of the token, or null. */
export function refuseRevoked(verdict: Verdict): string | null {
  if ('claims' in verdict) return null
  // The broker's messages (docs/spec/broker-api.md, "States"): a suspended session may resume, so its release is not ended.
  if (verdict.error === 'token is revoked')
    throw new CodedRefusalError(403, 'session_revoked', 'the session is revoked')
  if (verdict.error === 'token is suspended') {
    throw new CodedRefusalError(503, 'unavailable', 'the session is suspended: try again', { 'retry-after': '10' })
  }
  return verdict.error
}
