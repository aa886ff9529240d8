import { whenReady } from '@plat/core'
import { type AuthReason, isFault, parseJws, type SessionClaims, type TokenFault, type Verifier } from '@plat/tokens'
import type { Tenancy } from '../keys/tenancy.ts'
import type { Revocations, Subject } from './revocations.ts'

/** Why a session token is refused. The message is one line for the caller and never quotes the token. */
export interface SessionFault {
  readonly kind: 'fault'
  readonly reason: AuthReason | 'revoked' | 'unavailable'
  readonly message: string
}

/** Session tokens as the broker accepts them at every endpoint: verified, by a key of their tenant, not revoked since. */
export interface Sessions {
  /** For the default audience when none is named. */
  verify(token: string, audience?: string): SessionClaims | SessionFault | Promise<SessionClaims | SessionFault>
  /** Returns the revocation of a subject known from another token; null when there is none. */
  revoked(who: Subject): SessionFault | null
}

export function createSessions(verifier: Verifier, tenancy: Tenancy, revocations: Revocations): Sessions {
  const revoked = (who: Subject): SessionFault | null => {
    const verdict = revocations.judge(who, tenancy.tenantOf(who.namespace))
    if (verdict === null) return null
    if (verdict === 'unavailable') return unavailable
    return { kind: 'fault', reason: 'revoked', message: `token is ${verdict}` }
  }
  const judge = (answer: SessionClaims | TokenFault, token: string): SessionClaims | SessionFault => {
    if (isFault(answer)) return keyIsLost(tenancy, token, answer) ? tenantUnavailable : answer
    return unbound(tenancy, answer) ?? revoked(answer) ?? answer
  }
  return {
    verify(token, audience) {
      const answer = audience === undefined ? verifier.verify(token) : verifier.verify(token, audience)
      return whenReady(answer, judge, token)
    },
    revoked,
  }
}

/** docs/spec/broker-api.md, `POST /v1/token/verify`: tenant key binding. The key of one tenant vouches for no other. */
function unbound(tenancy: Tenancy, { namespace, keyThumbprint }: SessionClaims): SessionFault | null {
  const verdict = tenancy.binding(namespace, keyThumbprint)
  if (verdict === 'bound') return null
  if (verdict === 'unavailable') return tenantUnavailable
  return { kind: 'fault', reason: 'binding', message: 'token is signed by a key that is not of its tenant' }
}

/**
 * Returns whether the token's key is unknown because its tenant's key is missing. Then the token is not at fault. The claims are not verified for
 * this: a forger only learns that a tenant has no key.
 */
function keyIsLost(tenancy: Tenancy, token: string, { reason }: TokenFault): boolean {
  if (reason !== 'kid') return false
  const jws = parseJws(token)
  const namespace = isFault(jws) ? null : jws.payload.plat_ns
  return typeof namespace === 'string' && tenancy.binding(namespace, '') === 'unavailable'
}

export function isSessionFault(answer: SessionClaims | SessionFault): answer is SessionFault {
  return 'kind' in answer
}

const tenantUnavailable: SessionFault = {
  kind: 'fault',
  reason: 'unavailable',
  message: "the signing key of the token's tenant is not available",
}

const unavailable: SessionFault = {
  kind: 'fault',
  reason: 'unavailable',
  message: 'the list of revocations cannot be read',
}
