import { DPOP_ALGORITHMS } from '@plat/tokens'

/** Parameters of a `WWW-Authenticate` challenge in addition to its realm. */
export interface ChallengeParameters {
  /** RFC 6750 section 3.1; absent if the request had no credentials. */
  readonly error?: 'invalid_token' | 'invalid_dpop_proof'
  readonly error_description?: string
  /** Scope that the resource needs, for clients without a token. */
  readonly scope?: string
  /** RFC 9728 section 5.1. */
  readonly resource_metadata?: string
}

/** A `Bearer` challenge (RFC 6750), every parameter quoted. */
export function bearerChallenge(parameters: ChallengeParameters): string {
  return `Bearer ${list({ realm: 'plat', ...parameters })}`
}

/** A `DPoP` challenge (RFC 9449 section 7.1). */
export function dpopChallenge(parameters: ChallengeParameters): string {
  return `DPoP ${list({ algs: DPOP_ALGORITHMS.join(' '), ...parameters })}`
}

function list(parameters: object): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}="${String(value).replace(/["\\]/g, '')}"`)
    .join(', ')
}
