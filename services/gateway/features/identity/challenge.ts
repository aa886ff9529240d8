/** Members of a `WWW-Authenticate` challenge beside its realm. */
export interface ChallengeParameters {
  /** RFC 6750 section 3.1; absent when the caller sent no credentials at all. */
  readonly error?: 'invalid_token'
  readonly error_description?: string
  /** RFC 9728 section 5.1. */
  readonly resource_metadata?: string
}

/** A `Bearer` challenge (RFC 6750), every parameter quoted. */
export function bearerChallenge(parameters: ChallengeParameters): string {
  return `Bearer ${list({ realm: 'plat', ...parameters })}`
}

/** A `DPoP` challenge (RFC 9449 section 7.1). */
export function dpopChallenge(parameters: ChallengeParameters): string {
  return `DPoP ${list({ algs: 'EdDSA ES256', ...parameters })}`
}

function list(parameters: object): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}="${String(value).replace(/["\\]/g, '')}"`)
    .join(', ')
}

/**
 * Where the metadata of the resource at `path` stands (RFC 9728 section 3.1): the well-known part goes between host and
 * path. Null without a base URL.
 */
export function resourceMetadataUrl(resourceBaseURL: string, path: string): string | null {
  if (resourceBaseURL === '') return null
  const resource = new URL(resourceBaseURL.replace(/\/$/, '') + path)
  return `${resource.origin}/.well-known/oauth-protected-resource${resource.pathname}`
}
