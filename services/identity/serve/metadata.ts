import { publicUrl } from '@plat/http/endpoints'
import { DPOP_ALGORITHMS } from '@plat/tokens'
import type { FastifyInstance } from 'fastify'
import { EXCHANGE_PATH } from '../exchange/parts.ts'
import { TOKEN_EXCHANGE_GRANT } from '../exchange/request.ts'
import type { IdentitySettings } from '../flags.ts'
import { INTROSPECTION_PATH } from '../introspect/endpoint.ts'

/**
 * `GET /.well-known/oauth-authorization-server` (RFC 8414). Its `issuer` has to be the URL that it is found under, so it is
 * the public URL; the claim `iss` of the tokens is flag `-issuer`, which need not be a URL.
 */
export function mountMetadata(app: FastifyInstance, settings: IdentitySettings): void {
  app.get('/.well-known/oauth-authorization-server', (request, reply) => {
    const base = publicUrl(settings.publicUrl, request.raw)
    return reply.header('cache-control', 'no-store').send({
      issuer: base,
      token_endpoint: base + EXCHANGE_PATH,
      jwks_uri: `${base}/.well-known/jwks.json`,
      introspection_endpoint: base + INTROSPECTION_PATH,
      response_types_supported: [],
      grant_types_supported: [TOKEN_EXCHANGE_GRANT],
      token_endpoint_auth_methods_supported: ['none'],
      introspection_endpoint_auth_methods_supported: ['Bearer'],
      dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
    })
  })
}
