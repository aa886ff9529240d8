import assert from 'node:assert/strict'

/** The payload of a compact JWS, unverified. */
export function claimsOf(token: string | null | undefined): Readonly<Record<string, unknown>> {
  assert.ok(token, 'a token')
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}
