import { type AuthReason, isFault, type SessionClaims, type Verifier } from '@plat/tokens'
import type { Tenancy } from '../keys/tenancy.ts'
import type { Revocations, Subject } from './revocations.ts'

/** Why a session token does not count here. The message is one line for the caller and never quotes the token. */
export interface SessionFault {
  readonly kind: 'fault'
  readonly reason: AuthReason | 'revoked' | 'unavailable'
  readonly message: string
}

/** Session tokens as the broker accepts them at every endpoint: verified, and not revoked since. */
export interface Sessions {
  /** For the default audience when none is named. */
  verify(token: string, audience?: string): Promise<SessionClaims | SessionFault>
  /** The revocation of somebody who is known by another token; null when there is none. */
  revoked(who: Subject): SessionFault | null
}

export function createSessions(verifier: Verifier, tenancy: Tenancy, revocations: Revocations): Sessions {
  const revoked = (who: Subject): SessionFault | null => {
    const verdict = revocations.judge(who, tenancy.tenantOf(who.namespace))
    if (verdict === null) return null
    if (verdict === 'unavailable') return unavailable
    return { kind: 'fault', reason: 'revoked', message: `token is ${verdict}` }
  }
  return {
    async verify(token, audience) {
      const answer = await (audience === undefined ? verifier.verify(token) : verifier.verify(token, audience))
      return isFault(answer) ? answer : (revoked(answer) ?? answer)
    },
    revoked,
  }
}

export function isSessionFault(answer: SessionClaims | SessionFault): answer is SessionFault {
  return 'kind' in answer
}

const unavailable: SessionFault = {
  kind: 'fault',
  reason: 'unavailable',
  message: 'the list of revocations cannot be read',
}
