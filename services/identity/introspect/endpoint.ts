import { type Endpoint, OAuthError } from '@plat/http/endpoints'
import { isFault, parseJws } from '@plat/tokens'
import { type BindRecords, boundKey } from '../bind/records.ts'
import { Parameters } from '../serve/parameters.ts'
import { isSessionFault, type Sessions } from '../sessions/sessions.ts'

export const INTROSPECTION_PATH = '/v1/introspect'

export interface IntrospectionParts {
  readonly sessions: Sessions
  readonly records: BindRecords
}

/** `POST /v1/introspect` (RFC 7662): takes a token of any audience, returns its claims with `active`. The reason for an inactive one is not given. */
export function introspectionEndpoint({ sessions, records }: IntrospectionParts): Endpoint {
  return {
    path: INTROSPECTION_PATH,
    opensWith: 'token',
    takes: 'any',
    errors: 'oauth',
    async handle(body, request) {
      const token = Parameters.read(body, request).text('token')
      if (token === null) throw new OAuthError(400, 'invalid_request', 'token is missing')
      const claims = await sessions.verify(token, audienceOf(token) ?? undefined)
      if (isSessionFault(claims)) return { active: false }
      const jkt = await boundKey(claims, records)
      return {
        ...claims.members,
        ...(jkt === null ? {} : { cnf: { jkt } }),
        active: true,
        token_type: jkt === null ? 'Bearer' : 'DPoP',
      }
    },
  }
}

/** The broker answers for every token that it signed, for any audience: the token names the audience to verify it with. */
function audienceOf(token: string): string | null {
  const jws = parseJws(token)
  if (isFault(jws)) return null
  const { aud } = jws.payload
  const first: unknown = Array.isArray(aud) ? aud[0] : aud
  return typeof first === 'string' ? first : null
}
