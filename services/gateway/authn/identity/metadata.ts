import { pathOfTarget } from '@plat/core'
import type { Exchange, RawRoute } from '@plat/http'
import { DPOP_ALGORITHMS } from '@plat/tokens'
import type { TrustedIssuers } from './issuers/issuers.ts'
import { type Resources, WELL_KNOWN } from './resource.ts'

/** Cache lifetime of the metadata for clients, in seconds. */
const MAX_AGE_SECONDS = 300

export interface MetadataOptions {
  readonly issuers: TrustedIssuers
  readonly resources: Resources
  readonly dpopRequired: boolean
}

/**
 * Metadata of protected resources (RFC 9728), one document per MCP server: its authorization servers and scopes. Served without a token,
 * so it is the same for servers that do not exist.
 */
export function createMetadataRoute(options: MetadataOptions): RawRoute {
  return { prefix: WELL_KNOWN, handle: (exchange) => answer(exchange, options) }
}

function answer({ id, request, response }: Exchange, options: MetadataOptions): void {
  const path = pathOfTarget(request.url ?? '')
  const server = options.resources.described(path)
  const resource = server === null ? null : options.resources.of(server)
  response.setHeader('content-type', 'application/json')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    refuse(response, 405, { error: 'method_not_allowed', message: 'use GET', requestId: id })
    return
  }
  if (server === null || resource === null) {
    const message = `the path is ${WELL_KNOWN}/mcp/<name>, once identity.resourceBaseURL is set`
    refuse(response, 404, { error: 'not_found', message, requestId: id })
    return
  }
  response.setHeader('cache-control', `public, max-age=${MAX_AGE_SECONDS}`)
  // Public, so that clients in browsers can read it from any page.
  response.setHeader('access-control-allow-origin', '*')
  response.end(JSON.stringify(documentOf(server, resource, options)))
}

function refuse(response: Exchange['response'], status: number, body: object): void {
  response.statusCode = status
  response.setHeader('cache-control', 'no-store')
  response.end(JSON.stringify(body))
}

function documentOf(server: string, resource: string, { issuers, dpopRequired }: MetadataOptions): object {
  const serving = issuers.serving(server)
  const servers = new Set(serving.map(({ config }) => config.authorizationServer || config.issuer))
  const scopes = new Set(
    serving.flatMap((issuer) => issuer.scopesOf(server).map((scope) => issuer.config.scopePrefix + scope)),
  )
  return {
    resource,
    ...(serving.length > 0 && { authorization_servers: [...servers], scopes_supported: [...scopes] }),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
    dpop_bound_access_tokens_required: dpopRequired,
  }
}
