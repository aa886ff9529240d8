import { readJsonObject } from '@plat/core'

/** Members that are read; ID tokens of these providers are ignored. */
const MEMBERS = ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope', 'error', 'issued_token_type']

/**
 * Normalizes a token response to RFC 6749: some providers send errors with status 200, and Slack has its own token type. Other content
 * is returned unchanged and rejected by the reader.
 */
export function plainResponse(
  status: number,
  bytes: Uint8Array,
): { readonly status: number; readonly bytes: Uint8Array } {
  const answer = readJsonObject(bytes)
  if (answer === null) return { status, bytes }
  const result = Object.fromEntries(MEMBERS.flatMap((name) => (name in answer ? [[name, answer[name]]] : [])))
  if (result.token_type === 'user') result.token_type = 'Bearer'
  const failed = status === 200 && typeof result.error === 'string'
  return { status: failed ? 400 : status, bytes: Buffer.from(JSON.stringify(result)) }
}
