import { type Denial, errorTable, statusOf } from '../../call/index.ts'

/** What the headers of a refusal say on every plane: whether and when to try again, and how to authenticate. */
export function refusalHeaders(denial: Denial, resourceMetadata?: string): Record<string, string> {
  const row = errorTable[denial.code]
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (!('retry' in row)) headers['x-should-retry'] = 'false'
  if (denial.retryAfterMs !== null) headers['retry-after'] = String(Math.ceil(denial.retryAfterMs / 1000))
  if ('challenge' in row || statusOf(denial) === 401) headers['www-authenticate'] = challenge(denial, resourceMetadata)
  return headers
}

/**
 * `WWW-Authenticate`. Authentication brings its own; a missing scope and a revoked caller get theirs here (RFC 6750, section 3),
 * with `resource_metadata` (RFC 9728) where the gateway knows its public address.
 */
function challenge(denial: Denial, resourceMetadata: string | undefined): string {
  const given = denial.data?.challenge
  if (typeof given === 'string') return given
  const parameters: [string, unknown][] = [
    ['error', denial.code === 'insufficient_scope' ? denial.code : 'invalid_token'],
    ['scope', denial.data?.scope],
    ['resource_metadata', resourceMetadata],
  ]
  const told = parameters.flatMap(([name, value]) =>
    typeof value === 'string' ? [`${name}="${quotable(value)}"`] : [],
  )
  return `Bearer realm="plat", ${told.join(', ')}`
}

/** Quotes and backslashes cannot stand in the names that come here; controls must not reach a header. */
function quotable(text: string): string {
  return text.replace(/["\\]|[^\x20-\x7e]/g, '')
}
