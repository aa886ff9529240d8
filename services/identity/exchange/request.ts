import { OAuthError } from '@plat/http/endpoints'
import type { Parameters } from '../serve/parameters.ts'

export interface DelegationRequest extends ExchangeRequest {
  readonly actorToken: string
}

export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const JWT_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:jwt'
const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'
const TXN_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:txn_token'

/** The parameters of `POST /v1/exchange` (docs/spec/broker-api.md), decoded. Absent ones are null. */
export interface ExchangeRequest {
  readonly subjectToken: string
  readonly subjectKind: 'session' | 'transaction'
  /** Not null: the request is a delegation. */
  readonly actorToken: string | null
  readonly audience: string | null
  /** Null: every scope that there is. */
  readonly scopes: readonly string[] | null
  readonly ttlSeconds: number | null
}

/** Decodes and checks the request itself; grant, target, scope and proof are checked later, in this order. */
export function decodeExchangeRequest(parameters: Parameters): ExchangeRequest {
  const grantType = parameters.text('grant_type')
  if (grantType !== null && grantType !== TOKEN_EXCHANGE_GRANT) {
    throw new OAuthError(400, 'unsupported_grant_type', `grant_type must be ${TOKEN_EXCHANGE_GRANT}`)
  }
  const subjectToken = parameters.text('subject_token')
  if (subjectToken === null) throw invalid('subject_token is missing')
  const actorToken = parameters.text('actor_token')
  const audience = parameters.text('audience')
  if (actorToken === null && audience === null) throw invalid('audience is missing')
  checkActorType(parameters.text('actor_token_type'), actorToken)
  // Accepted, not used; a value that is not a text is still no request.
  parameters.text('requested_token_type')
  return {
    subjectToken,
    subjectKind: subjectKind(parameters.text('subject_token_type'), actorToken),
    actorToken,
    audience,
    scopes:
      parameters
        .text('scope')
        ?.split(' ')
        .filter((scope) => scope !== '') ?? null,
    ttlSeconds: parameters.positiveInteger('requested_ttl_seconds'),
  }
}

function subjectKind(type: string | null, actorToken: string | null): ExchangeRequest['subjectKind'] {
  if (type === null || type === JWT_TOKEN_TYPE || type === ACCESS_TOKEN_TYPE) return 'session'
  if (type !== TXN_TOKEN_TYPE) throw invalid('subject_token_type is not supported')
  if (actorToken === null)
    throw invalid('a transaction token is a subject of a delegation only: actor_token is missing')
  return 'transaction'
}

function checkActorType(type: string | null, actorToken: string | null): void {
  if (type === null) return
  if (actorToken === null) throw invalid('actor_token_type is there without actor_token')
  if (type !== JWT_TOKEN_TYPE && type !== ACCESS_TOKEN_TYPE) throw invalid('actor_token_type is not supported')
}

function invalid(description: string): OAuthError {
  return new OAuthError(400, 'invalid_request', description)
}
