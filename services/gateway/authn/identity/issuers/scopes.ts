import { type Identity, toolsScopeOf } from '../../../call/index.ts'
import type { TrustedIssuers } from './issuers.ts'

/** Scopes that calls of an MCP server need. */
export interface ScopeRules {
  /**
   * Returns null if the caller has all scopes, otherwise every scope of this call as the caller's issuer writes them, for the challenge
   * (RFC 6750, section 3.1): a client requests them together.
   */
  missing(identity: Identity, server: string, tool: string | null): string | null
}

/** `tools:<name>`, and the step-up scopes of the caller's issuer. */
export function createScopeRules(issuers: TrustedIssuers): ScopeRules {
  return {
    missing(identity, server, tool) {
      const issuer = issuers.of(identity)
      if (issuer === null) {
        const scope = toolsScopeOf(server)
        return identity.scopes.has(scope) ? null : scope
      }
      const needed = issuer.scopesFor(server, tool)
      if (needed.every((scope) => identity.scopes.has(scope))) return null
      return needed.map((scope) => issuer.config.scopePrefix + scope).join(' ')
    },
  }
}
