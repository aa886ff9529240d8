import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget } from '../../../../test/fuzz/target.ts'
import { askToken } from './endpoint.ts'
import { type FiledAuth, secretOf } from './secret.ts'

/** Valid header values (RFC 9110, section 5.5). */
const SENDABLE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('a', ' ', '\r', '\n', '\0', ':', 'é', '-----BEGIN', '='), maxLength: 10 }),
)
const credentialKey = 'a.b'
const oauth = { tokenURL: 'https://t', audience: null, resource: null, scopes: [] }
const auth: fc.Arbitrary<FiledAuth> = fc.constantFrom<FiledAuth>(
  { type: 'bearerSecret', credentialKey },
  { type: 'headerSecret', credentialKey, headerName: 'X-Key' },
  { type: 'oauthClientCredentials', credentialKey, oauth },
  { type: 'mtls', credentialKey },
)

const member = fc.oneof(
  text,
  fc.constantFrom('bearer', 'Bearer', 'DPoP', 'abc', 300, 0, -1, 1e308, null, true),
  fc.anything({ maxDepth: 1 }),
)
const names = fc.constantFrom('access_token', 'token_type', 'expires_in', 'error', '__proto__', 'x')
const answer = fc.oneof(
  fc.dictionary(names, member, { maxKeys: 6 }).map((one) => JSON.stringify(one) ?? ''),
  fc.string({ unit: 'binary', maxLength: 60 }),
)

/** Files of any content are a valid secret, or a problem that quotes none of it. */
const files = fc.property(auth, text, text, (one, first, second) => {
  const secret = secretOf(one, [first, second])
  if (typeof secret === 'string') assert.ok(first.length < 8 || !secret.includes(first))
  else if ('headers' in secret) for (const value of Object.values(secret.headers)) assert.match(value, SENDABLE)
  else assert.ok(secret.id !== '' && secret.secret !== '')
})

/** Any response of a token endpoint gives a valid unexpired token, or a problem without text of the endpoint. */
const answers = fc.asyncProperty(fc.constantFrom(200, 201, 302, 400, 401, 500), answer, async (status, body) => {
  const dialer = { fetchBytes: async () => ({ status, headers: {}, bytes: Buffer.from(body) }) }
  const grant = await askToken(dialer, { url: 'https://t', form: new URLSearchParams(), client: null, caPEM: null })
  if (typeof grant === 'string') {
    assert.match(grant, /^the token endpoint (?:gave|answered) [ -~]{1,100}$/)
    return
  }
  assert.equal(status, 200)
  assert.match(grant.credential.headers.authorization ?? '', SENDABLE)
  assert.ok(grant.expiresInSeconds === null || grant.expiresInSeconds > 0)
})

/** No secret and no response gives a credential that cannot be sent. */
export const target = fuzzTarget('gateway: upstream credentials', {
  'credential files': files,
  'token endpoints': answers,
})
