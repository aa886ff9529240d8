import { createHmac } from 'node:crypto'
import { type Clock, systemClock } from '@plat/core'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { type AuthReason, type KeySource, signJws, staticSource } from '@plat/tokens'
import { randomToken, startTestService, type TestService } from './processes/service.ts'

/** Default claims of `testIssuer`. */
export const TEST_ISSUER = 'plat-identity'
export const TEST_AUDIENCE = 'plat-gateway'
export const TEST_TRUST_DOMAIN = 'plat.local'
const LIFETIME_SECONDS = 900

/** A token that must be refused, and why. */
export interface InvalidToken {
  readonly name: string
  readonly token: string
  readonly reason: AuthReason
}

/** An issuer of session tokens for tests: the right ones, and every kind of wrong one. Its key is made at run time. */
export interface TestIssuer {
  readonly signer: LocalSigner
  /** The keys that a verifier of these tokens trusts. */
  readonly keys: KeySource
  /** The key document that a broker would publish. */
  jwks(): { keys: object[] }
  /** Claims of a valid token; `undefined` removes one. */
  claims(change?: Readonly<Record<string, unknown>>): Record<string, unknown>
  /** A valid token, unless the change makes it invalid. */
  token(change?: Readonly<Record<string, unknown>>, header?: object): string
  /** One of each kind that a verifier must refuse. */
  invalid(): readonly InvalidToken[]
}

export function testIssuer({ clock = systemClock }: { clock?: Clock } = {}): TestIssuer {
  const signer = ephemeralSigner()
  let count = 0
  const claims = (change: Readonly<Record<string, unknown>> = {}) => {
    const now = Math.floor(clock.now() / 1000)
    count++
    return {
      iss: TEST_ISSUER,
      sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/s1`,
      aud: TEST_AUDIENCE,
      iat: now,
      nbf: now,
      exp: now + LIFETIME_SECONDS,
      jti: `jti-${count}`,
      act: { sub: 'user:ada' },
      scope: 'tools:notes',
      plat_ns: 'default',
      plat_agent: 'assistant',
      plat_session: 's1',
      plat_tier: 'tier-0',
      ...change,
    }
  }
  const token = (change: Readonly<Record<string, unknown>> = {}, header: object = {}) =>
    signJws(signer, header, claims(change))
  return {
    signer,
    keys: staticSource([signer.publicKey]),
    jwks: () => ({ keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig', alg: 'EdDSA' }] }),
    claims,
    token,
    invalid: () => [
      ...wrongClaims(token, Math.floor(clock.now() / 1000)),
      ...wrongHeaders(token, signer),
      ...wrongSignatures(token(), claims()),
      ...wrongEncodings(token(), signer, claims()),
    ],
  }
}

type Mint = TestIssuer['token']

function wrongClaims(mint: Mint, now: number): readonly InvalidToken[] {
  const bad = (name: string, reason: AuthReason, change: Readonly<Record<string, unknown>>) => ({
    name,
    reason,
    token: mint(change),
  })
  let deepAct: object = { sub: 'user:ada' }
  for (let level = 0; level < 33; level++) deepAct = { sub: `spiffe://d/ns/n/agent/a/session/s${level}`, act: deepAct }
  return [
    bad('expired an hour ago', 'expired', { iat: now - 7200, nbf: now - 7200, exp: now - 3600 }),
    bad('not valid for another hour', 'expired', { nbf: now + 3600, exp: now + 7200 }),
    bad('issued in an hour', 'expired', { iat: now + 3600, exp: now + 7200 }),
    bad('for another audience', 'audience', { aud: 'another' }),
    bad('for a list of other audiences', 'audience', { aud: ['one', 'two'] }),
    bad('of another issuer', 'issuer', { iss: 'https://elsewhere.example' }),
    bad('sub of another session', 'binding', {
      sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/s2`,
    }),
    bad('sub of another trust domain', 'binding', { sub: 'spiffe://elsewhere/ns/default/agent/assistant/session/s1' }),
    bad('sub with percent-encoding', 'binding', {
      sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/%73%31`,
    }),
    bad('sub with a trailing slash', 'binding', {
      sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/s1/`,
    }),
    bad('another agent in plat_agent', 'binding', { plat_agent: 'admin' }),
    bad('no plat_ns', 'binding', { plat_ns: undefined }),
    bad('bound by an unknown confirmation', 'binding', { cnf: { 'x5t#S256': 'A'.repeat(43) } }),
    bad('bound to a thumbprint with unused bits', 'binding', { cnf: { jkt: `${'A'.repeat(42)}B` } }),
    bad('empty confirmation', 'binding', { cnf: {} }),
    bad('bound twice, once by an unknown way', 'binding', { cnf: { jkt: 'A'.repeat(43), jku: 'x' } }),
    bad('no exp', 'malformed', { exp: undefined }),
    bad('exp as text', 'malformed', { exp: String(now + 900) }),
    bad('exp with a fraction', 'malformed', { exp: now + 900.5 }),
    bad('no iat', 'malformed', { iat: undefined }),
    bad('no jti', 'malformed', { jti: undefined }),
    bad('no aud', 'malformed', { aud: undefined }),
    bad('aud of mixed types', 'malformed', { aud: [TEST_AUDIENCE, 1] }),
    bad('more than 32 groups', 'malformed', { plat_groups: Array.from({ length: 33 }, (_, i) => `g${i}`).join(' ') }),
    bad('two spaces between scopes', 'malformed', { scope: 'tools:a  tools:b' }),
    bad('principal verified by an unknown way', 'malformed', { plat_principal_verified: 'guess' }),
    bad('act without a name', 'malformed', { act: { sub: 'ada' } }),
    bad('act behind the user', 'malformed', { act: { sub: 'user:ada', act: { sub: 'user:bob' } } }),
    bad('act deeper than allowed', 'malformed', { act: deepAct }),
    bad('act as a list', 'malformed', { act: ['user:ada'] }),
  ]
}

function wrongHeaders(mint: Mint, signer: LocalSigner): readonly InvalidToken[] {
  const bad = (name: string, reason: AuthReason, header: object) => ({ name, reason, token: mint({}, header) })
  return [
    bad('typ of a transaction token', 'typ', { typ: 'txntoken+jwt' }),
    bad('typ of a transaction token in capitals', 'typ', { typ: 'TxnToken+JWT' }),
    bad('typ of a transaction token as a full media type', 'typ', { typ: 'application/txntoken+jwt' }),
    bad('typ of a DPoP proof', 'typ', { typ: 'dpop+jwt' }),
    bad('typ that is not text', 'malformed', { typ: 1 }),
    bad('alg by its name of RFC 9864', 'signature', { alg: 'Ed25519' }),
    bad('alg in lower case', 'signature', { alg: 'eddsa' }),
    bad('alg of another key type', 'signature', { alg: 'ES256' }),
    bad('alg that is not switched on', 'signature', { alg: 'ML-DSA-65' }),
    bad('no alg', 'malformed', { alg: undefined }),
    bad('critical member', 'malformed', { crit: ['exp'] }),
    bad('unencoded payload', 'malformed', { b64: false }),
    bad('unknown kid', 'kid', { kid: 'nobody' }),
    bad('kid that walks the file system', 'kid', { kid: '../../../../dev/null' }),
    bad('kid with SQL', 'kid', { kid: "' or 1=1 --" }),
    bad('kid with NUL', 'kid', { kid: `${signer.kid}\0` }),
    bad('kid of a prototype', 'kid', { kid: '__proto__' }),
    bad('kid that is a list', 'malformed', { kid: [signer.kid] }),
    bad('longer than any header may be', 'malformed', { pad: 'x'.repeat(16_384) }),
  ]
}

function wrongSignatures(token: string, claims: object): readonly InvalidToken[] {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const attacker = ephemeralSigner()
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const kid = JSON.parse(Buffer.from(header, 'base64url').toString()).kid
  const hmacInput = `${encode({ alg: 'HS256', kid })}.${payload}`
  const hmac = createHmac('sha256', kid).update(hmacInput).digest('base64url')
  const none = ['none', 'None', 'NONE', 'nOnE'].map((alg) => ({
    name: `alg ${alg}`,
    reason: 'signature' as const,
    token: `${encode({ alg, kid })}.${payload}.`,
  }))
  const bad = (name: string, changed: string) => ({ name, reason: 'signature' as const, token: changed })
  return [
    ...none,
    bad('HMAC keyed with public text', `${hmacInput}.${hmac}`),
    bad('signed by another key under our kid', signJws(attacker, { kid }, claims)),
    bad('key of the attacker in the header', signJws(attacker, { kid, jwk: attacker.publicJwk }, claims)),
    bad('empty signature', `${header}.${payload}.`),
    bad('signature cut short', `${header}.${payload}.${signature.slice(0, 40)}`),
    bad('payload replaced', `${header}.${encode({ ...claims, plat_tier: 'tier-2' })}.${signature}`),
    bad('payload of another token', `${header}.${encode({ ...claims, jti: 'other' })}.${signature}`),
  ]
}

function wrongEncodings(token: string, signer: LocalSigner, claims: object): readonly InvalidToken[] {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const bad = (name: string, changed: string) => ({ name, reason: 'malformed' as const, token: changed })
  const signedText = (head: string, body: string | Buffer) => {
    const input = `${Buffer.from(head).toString('base64url')}.${Buffer.from(body).toString('base64url')}`
    return `${input}.${Buffer.from(signer.sign(Buffer.from(input))).toString('base64url')}`
  }
  const head = JSON.stringify({ alg: 'EdDSA', kid: signer.kid })
  const body = JSON.stringify(claims)
  // 64 bytes leave four unused bits in the last character: `A`, `Q`, `g` or `w`; its successor sets one of them.
  const unused = String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1)
  return [
    bad('empty', ''),
    bad('two segments', `${header}.${payload}`),
    bad('four segments', `${token}.x`),
    bad('padded signature', `${token}==`),
    bad('line feed behind the signature', `${token}\n`),
    bad('space in the signature', `${header}.${payload}. ${signature}`),
    bad('unused bits of the signature', `${header}.${payload}.${signature.slice(0, -1)}${unused}`),
    bad('another alphabet', `${header}.${payload}.${'+/'.repeat(43)}`),
    bad('duplicate sub', signedText(head, body.replace('{', '{"sub":"spiffe://plat.local/ns/a/agent/b/session/c",'))),
    bad('duplicate alg', signedText(head.replace('{', '{"alg":"EdDSA",'), body)),
    bad('duplicate by an escape', signedText(head, body.replace('{', '{"\\u0073ub":"x",'))),
    bad('infinite exp', signedText(head, body.replace(/"exp":\d+/, '"exp":1e400'))),
    bad('byte order mark', signedText(head, `\ufeff${body}`)),
    bad(
      'invalid UTF-8',
      signedText(head, Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')])),
    ),
    bad('payload that is a list', signedText(head, `[${body}]`)),
    bad('lone surrogate in the user', signedText(head, body.replace('user:ada', 'user:\\ud800'))),
    bad('thousands of levels', signedText(head, body.replace('{', `{"x":${'['.repeat(3000)}${']'.repeat(3000)},`))),
  ]
}

/** A broker in a separate process. */
export interface TestIdentity extends TestService {
  readonly brokerToken: string
}

/** Starts `plat-identity` on a free port with a new broker token and additional `flags`. */
export async function startTestIdentity(flags: readonly string[] = []): Promise<TestIdentity> {
  const brokerToken = randomToken()
  const service = await startTestService('identity', { flags, env: { PLAT_BROKER_TOKEN: brokerToken } })
  return { ...service, brokerToken }
}
