import assert from 'node:assert/strict'
import { randomBytes, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { encodeBase64url } from '@plat/core'
import { type CertificateOptions, createAuthority, type Issued, keyUsage } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import type { Proof } from './check.ts'
import { SPIFFE_PROOF_PREFIX, spiffeCheck } from './spiffe.ts'
import { jwkOf, signJwt } from './testing/jwt.ts'
import { type Attempt, context, NONCE, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const ID = 'spiffe://mesh.example/ns/default/sa/runner'
const dir = tempFolder()

/** A trust domain with its authority, its JWT key, and a check that trusts them. */
async function setUp({ bundle = true }: { readonly bundle?: boolean } = {}) {
  const parts = testParts()
  const authority = await createAuthority({ name: 'mesh', now: parts.clock.now() })
  const jwtKey = await createAuthority({ name: 'jwt', now: parts.clock.now() })
  const stranger = await createAuthority({ name: 'stranger', now: parts.clock.now() })
  const file = path.join(dir, `${randomBytes(8).toString('hex')}.json`)
  const keys = [
    { ...jwkOf(jwtKey.privateKey), kid: 'k1', use: 'jwt-svid' },
    { ...jwkOf(authority.privateKey), use: 'x509-svid', x5c: [authority.x5c] },
    { ...jwkOf(authority.privateKey), kid: 'wit', use: 'wit-svid', x5c: [stranger.x5c] },
  ]
  if (bundle) writeFileSync(file, JSON.stringify({ keys }))
  const settings = {
    bundles: new Map([['mesh.example', file]]),
    audience: 'plat-identity',
    ids: ['spiffe://*/ns/{namespace}/sa/*'],
  }
  const check = spiffeCheck(settings, parts)
  const now = Math.floor(parts.clock.now() / 1000)
  const token = (claims: object = {}, { key = jwtKey, ...header }: { key?: Issued; [name: string]: unknown } = {}) =>
    signJwt(
      { alg: 'ES256', kid: 'k1', ...header },
      { sub: ID, aud: ['plat-identity'], exp: now + 300, ...claims },
      key.privateKey,
    )
  const svid = async (overrides: Partial<CertificateOptions> = {}, by = authority): Promise<Attempt> => {
    const leaf = await by.issue({ name: 'runner', uris: [ID], ...overrides })
    return { check, proof: held(leaf, {}) }
  }
  return {
    parts,
    authority,
    stranger,
    check,
    token,
    svid,
    now,
    jwt: (text: string) => ({ check, proof: proofOf('spiffe', { token: text }) }),
  }
}

/** A proof that shows by a signature over the nonce that the leaf's key is held. */
function held(leaf: Issued, change: Partial<Proof>, above: readonly Issued[] = []): Proof {
  const bytes = Buffer.from(`${SPIFFE_PROOF_PREFIX}${NONCE}`)
  const signature = sign('sha256', bytes, { key: leaf.privateKey, dsaEncoding: 'ieee-p1363' })
  const x5c = [leaf, ...above].map((each) => each.x5c)
  return proofOf('spiffe', { nonce: NONCE, x5c, format: 'ES256', signature: encodeBase64url(signature), ...change })
}

proofCheckSuite({
  name: 'spiffe, JWT-SVID',
  substrate: { check: 'spiffe', attestation: 'jwt-svid', workload: ID },
  async accepted() {
    const { token, jwt } = await setUp()
    return jwt(token())
  },
  async replayed() {
    const { token, jwt } = await setUp()
    const attempt = jwt(token())
    return [attempt, { ...attempt, context: { ...context, session: 's2' } }]
  },
  async tampered() {
    const { token, jwt } = await setUp()
    const [head, , tail] = token().split('.')
    const [, body] = token({ sub: `${ID}2` }).split('.')
    return jwt([head, body, tail].join('.'))
  },
  async wrongAnchor() {
    const { token, jwt, parts } = await setUp()
    return jwt(token({}, { key: await createAuthority({ name: 'jwt', now: parts.clock.now() }) }))
  },
  async expired() {
    const { token, jwt, now } = await setUp()
    return jwt(token({ exp: now - 31 }))
  },
  async unreachable() {
    const { token, jwt } = await setUp({ bundle: false })
    return jwt(token())
  },
  refused: {
    'a token for another audience': { reason: /audience/, ask: async () => jwtWith({ aud: ['elsewhere'] }) },
    'a token without "exp"': { reason: /"exp"/, ask: async () => jwtWith({ exp: undefined }) },
    'a token of EdDSA, which no JWT-SVID has': { reason: /algorithm/, ask: async () => jwtWith({}, { alg: 'EdDSA' }) },
    'a token that says none': { reason: /algorithm/, ask: async () => jwtWith({}, { alg: 'none' }) },
    'a token of another type': { reason: /"typ"/, ask: async () => jwtWith({}, { typ: 'at+jwt' }) },
    'a token under a key of another use': { reason: /no key/, ask: async () => jwtWith({}, { kid: 'wit' }) },
    'a token without "kid"': { reason: /"kid"/, ask: async () => jwtWith({}, { kid: undefined }) },
    'an ID of another namespace': {
      reason: /may not prove/,
      ask: async () => jwtWith({ sub: ID.replace('default', 'prod') }),
    },
    'an ID of another trust domain': {
      reason: /domain/,
      ask: async () => jwtWith({ sub: ID.replace('mesh', 'evil') }),
    },
    'the ID of the trust domain itself': {
      reason: /SPIFFE ID/,
      ask: async () => jwtWith({ sub: 'spiffe://mesh.example' }),
    },
    'an ID of more than 2048 bytes': {
      reason: /SPIFFE ID/,
      ask: async () => jwtWith({ sub: ID + '/r'.repeat(1024) }),
    },
    'an ID in capitals': { reason: /SPIFFE ID/, ask: async () => jwtWith({ sub: ID.replace('mesh', 'Mesh') }) },
    'a token beside a nonce that it does not bind': {
      reason: /without nonce/,
      ask: async () => {
        const { token, check } = await setUp()
        return { check, proof: proofOf('spiffe', { token: token(), nonce: NONCE }) }
      },
    },
    'no credential at all': {
      reason: /neither/,
      ask: async () => ({ check: (await setUp()).check, proof: proofOf('spiffe', {}) }),
    },
  },
})

async function jwtWith(claims: object, header: Readonly<Record<string, unknown>> = {}): Promise<Attempt> {
  const { token, jwt } = await setUp()
  return jwt(token(claims, header))
}

proofCheckSuite({
  name: 'spiffe, X.509-SVID',
  substrate: { check: 'spiffe', attestation: 'x509-svid', workload: ID },
  async accepted() {
    const { authority, check } = await setUp()
    const middle = await authority.issue({ name: 'middle', ca: 0 })
    return { check, proof: held(await middle.issue({ name: 'runner', uris: [ID] }), {}, [middle]) }
  },
  async replayed() {
    const { svid } = await setUp()
    const attempt = await svid()
    // The nonce of the proof was used up; another one is not what was signed.
    return [attempt, { ...attempt, proof: { ...attempt.proof, nonce: [...NONCE].reverse().join('') } }]
  },
  async tampered() {
    const { svid } = await setUp()
    const { check, proof } = await svid()
    const der = Buffer.from(proof.x5c[0] ?? '', 'base64')
    const at = der.length - 5
    der[at] = (der[at] ?? 0) ^ 1
    return { check, proof: { ...proof, x5c: [der.toString('base64')] } }
  },
  async wrongAnchor() {
    const { svid, parts } = await setUp()
    return svid({}, await createAuthority({ name: 'mesh', now: parts.clock.now() }))
  },
  async expired() {
    const { svid, parts } = await setUp()
    return svid({ notAfter: parts.clock.now() - 1000 })
  },
  async unreachable() {
    const { svid } = await setUp({ bundle: false })
    return svid()
  },
  refused: {
    'a chain alone, which is public': {
      reason: /key is held/,
      ask: async () => without({ nonce: null, signature: null, format: null }),
    },
    'a signature of another algorithm': { reason: /key is held/, ask: async () => without({ format: 'ES384' }) },
    'a leaf under an authority of another use': {
      reason: /no anchor/,
      ask: async () => {
        const { svid, stranger } = await setUp()
        return svid({}, stranger)
      },
    },
    'two URI names': { reason: /one URI/, ask: async () => (await setUp()).svid({ uris: [ID, `${ID}2`] }) },
    'a leaf that is an authority': { reason: /authority/, ask: async () => (await setUp()).svid({ ca: true }) },
    'a leaf that may sign certificates': {
      reason: /key usage/,
      ask: async () => (await setUp()).svid({ keyUsage: keyUsage.digitalSignature | keyUsage.keyCertSign }),
    },
    'a leaf that may not sign': {
      reason: /key usage/,
      ask: async () => (await setUp()).svid({ keyUsage: keyUsage.keyEncipherment }),
    },
    'an extension thatis listed twice': {
      reason: /cannot be read/,
      ask: async () => {
        const twice = { oid: '1.2.3.4', critical: false, value: Buffer.from([5, 0]) }
        return (await setUp()).svid({ extensions: [twice, twice] })
      },
    },
    'a certificate in another text than its own': {
      reason: /cannot be read/,
      ask: async () => {
        const { check, proof } = await (await setUp()).svid()
        return { check, proof: { ...proof, x5c: proof.x5c.map((text) => `${text} `) } }
      },
    },
    'a key usage that is not critical': {
      reason: /critical key usage/,
      ask: async () => (await setUp()).svid({ keyUsageIsCritical: false }),
    },
    'an extended key usage for servers alone': {
      reason: /extended/,
      ask: async () => (await setUp()).svid({ extKeyUsage: ['1.3.6.1.5.5.7.3.1'] }),
    },
    'an unknown critical extension': {
      reason: /not understood/,
      ask: async () =>
        (await setUp()).svid({ extensions: [{ oid: '1.2.3.4', critical: true, value: Buffer.from([5, 0]) }] }),
    },
    'a leaf under a leaf': {
      reason: /no anchor/,
      ask: async () => {
        const { authority, check } = await setUp()
        const leaf = await authority.issue({ name: 'one', uris: [ID] })
        return { check, proof: held(await leaf.issue({ name: 'two', uris: [ID] }), {}, [leaf]) }
      },
    },
    'a leaf under one that may sign and is not an authority': {
      reason: /no anchor/,
      ask: async () => {
        const { authority, check } = await setUp()
        const one = await authority.issue({ name: 'one', keyUsage: keyUsage.keyCertSign })
        return { check, proof: held(await one.issue({ name: 'two', uris: [ID] }), {}, [one]) }
      },
    },
    'an authority too many': {
      reason: /no anchor/,
      ask: async () => {
        const { authority, check } = await setUp()
        const one = await authority.issue({ name: 'one', ca: 0 })
        const two = await one.issue({ name: 'two', ca: true })
        return { check, proof: held(await two.issue({ name: 'leaf', uris: [ID] }), {}, [two, one]) }
      },
    },
  },
})

async function without(change: Partial<Proof>): Promise<Attempt> {
  const { svid } = await setUp()
  const { check, proof } = await svid()
  return { check, proof: { ...proof, ...change } }
}

test('spiffe: the certificate of the TLS handshake needs no signature, another one in x5c does', async () => {
  // Shows D1.proof.check.spiffe.
  const { authority, check } = await setUp()
  const leaf = await authority.issue({ name: 'runner', uris: [ID] })
  const other = await authority.issue({ name: 'other', uris: [ID] })
  const ask = async (members: Partial<Proof>) =>
    (await check.verify(proofOf('spiffe', members), { ...context, clientCertificate: leaf.der })).kind
  assert.equal(await ask({}), 'established')
  assert.equal(await ask({ x5c: [leaf.x5c] }), 'established')
  assert.equal(await ask({ x5c: [other.x5c] }), 'failed')
  assert.equal(await ask({ x5c: [leaf.x5c], nonce: NONCE }), 'failed')
})
