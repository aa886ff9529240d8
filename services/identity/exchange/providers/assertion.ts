import { parseSessionSpiffeId } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import { signToken } from '../../keys/sign.ts'
import type { CredentialRequest } from '../provider.ts'
import type { CloudParts } from './cloud.ts'
import { param } from './params.ts'

/**
 * Returns the assertion that a cloud accepts in place of a secret: a JWT about the session with the claims of the federation discovery document,
 * signed by the federation key. No verifier of session tokens trusts that key.
 */
export function assertion(
  { federation, clock }: CloudParts,
  request: CredentialRequest,
  audience: string,
): string | Promise<string> {
  const { subject, scopes, jti, lifetimeSeconds } = request
  const issuedAt = Math.floor(clock.now() / 1000)
  return signToken(federation.signer(), {
    header: { typ: 'JWT' },
    claims: {
      iss: federation.issuer,
      sub: assertionSubject(request),
      aud: audience,
      iat: issuedAt,
      nbf: issuedAt,
      exp: issuedAt + lifetimeSeconds,
      jti,
      plat_ns: subject.namespace,
      plat_agent: subject.agent,
      plat_session: subject.session,
      plat_tier: subject.members.plat_tier,
      scope: scopes.join(' '),
    },
    namespace: subject.namespace,
    refuse: (message) => new OAuthError(503, 'temporarily_unavailable', message),
  })
}

/**
 * The agent's SPIFFE ID, which a trust policy can name; or the session's with `params.subject` `session`, for clouds whose
 * policies match by pattern.
 */
function assertionSubject({ subject, audience }: CredentialRequest): string {
  const name = parseSessionSpiffeId(subject.subject)
  if (name === null || param(audience.params, 'subject') === 'session') return subject.subject
  return `spiffe://${name.trustDomain}/ns/${name.namespace}/agent/${name.agent}`
}
