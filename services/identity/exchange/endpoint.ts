import { type Endpoint, OAuthError } from '@plat/http/endpoints'
import { type DelegationParts, delegate } from '../delegate/delegate.ts'
import { type Asker, recordRefused } from '../serve/audit.ts'
import { Parameters } from '../serve/parameters.ts'
import { exchange } from './exchange.ts'
import { EXCHANGE_PATH } from './parts.ts'
import { decodeExchangeRequest } from './request.ts'

/** `POST /v1/exchange`: RFC 8693 token exchange and, with an actor token, delegation (docs/spec/broker-api.md). */
export function exchangeEndpoint(parts: DelegationParts): Endpoint {
  return {
    path: EXCHANGE_PATH,
    opensWith: 'request',
    takes: 'any',
    errors: 'oauth',
    isNewWork: true,
    async handle(body, request) {
      let event: 'exchange' | 'delegation' = 'exchange'
      const who: Asker = {}
      try {
        const requested = decodeExchangeRequest(Parameters.read(body, request))
        if (requested.actorToken === null) return await exchange(parts, requested, request, who)
        event = 'delegation'
        return await delegate(parts, { ...requested, actorToken: requested.actorToken }, request, who)
      } catch (error) {
        if (error instanceof OAuthError) recordRefused(parts, event, error, who)
        throw error
      }
    },
  }
}
