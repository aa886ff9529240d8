import { readJsonObject } from '@plat/core'

/** What is read of an answer; ID tokens of providers say nothing here. */
const MEMBERS = ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope', 'error', 'issued_token_type']

/**
 * An answer of a provider's token endpoint as RFC 6749 has it: some tell errors with status 200, and Slack has words of its own for
 * the type of a token. What is no JSON object stays as it is, and is refused by whoever reads it.
 */
export function plainAnswer(
  status: number,
  bytes: Uint8Array,
): { readonly status: number; readonly bytes: Uint8Array } {
  const answer = readJsonObject(bytes)
  if (answer === null) return { status, bytes }
  const told = Object.fromEntries(MEMBERS.flatMap((name) => (name in answer ? [[name, answer[name]]] : [])))
  if (told.token_type === 'user') told.token_type = 'Bearer'
  const failed = status === 200 && typeof told.error === 'string'
  return { status: failed ? 400 : status, bytes: Buffer.from(JSON.stringify(told)) }
}
