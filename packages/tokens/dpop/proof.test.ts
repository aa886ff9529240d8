import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { poolTable, SharedPool, TestClock } from '@plat/core'
import { type ProofChange, testProver } from '@plat/testkit/dpop'
import { testIssuer } from '@plat/testkit/identity'
import fc from 'fast-check'
import { normalHtu } from './htu.ts'
import { createProofVerifier, type DpopProof, type ProvenRequest } from './proof.ts'
import { memoryReplayStore } from './replay.ts'

const URL_HERE = 'https://id.example/v1/token/bind'
const TOKEN = testIssuer().token()

function setUp(alg: 'EdDSA' | 'ES256' = 'EdDSA') {
  const clock = new TestClock()
  const prover = testProver({ clock, alg })
  const verifier = createProofVerifier({ clock, replays: memoryReplayStore(clock) })
  const check = (headers: readonly string[], more: Partial<ProvenRequest> = {}) =>
    verifier.check({ headers, method: 'POST', url: URL_HERE, accessToken: TOKEN, ath: 'required', ...more })
  const checkChanged = (change: ProofChange) => check([prover.proof(URL_HERE, TOKEN, change)])
  return { clock, prover, verifier, check, checkChanged }
}

function assertProof(answer: ReturnType<ReturnType<typeof setUp>['check']>): asserts answer is DpopProof {
  assert.equal(answer.kind, 'proof', JSON.stringify(answer))
}

function messageOf(answer: ReturnType<ReturnType<typeof setUp>['check']>): string {
  return answer.kind === 'proofFault' ? answer.message : 'it was accepted'
}

test('proofs by an Ed25519 key and a P-256 key are valid and give the thumbprint of the key', () => {
  // Shows D1.auth.dpop.EdDSA, D1.auth.dpop.ES256.
  for (const alg of ['EdDSA', 'ES256'] as const) {
    const { prover, check } = setUp(alg)
    const answer = check([prover.proof(URL_HERE, TOKEN)])
    assertProof(answer)
    assert.equal(answer.jkt, prover.jkt)
  }
})

test('the proof of RFC 9449, section 4.2, is valid only at its own time', () => {
  const text =
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg'
  const clock = new TestClock(1562262616_000)
  const verifier = createProofVerifier({ clock, replays: memoryReplayStore(clock) })
  const request = { headers: [text], method: 'POST', accessToken: '', ath: 'optional' } as const
  assert.equal(verifier.check({ ...request, url: 'https://server.example.com/token' }).kind, 'proof')
  assert.equal(verifier.check({ ...request, url: 'https://server.example.com/other' }).kind, 'proofFault')
  const later = createProofVerifier({ clock: new TestClock(), replays: memoryReplayStore(clock) })
  assert.equal(later.check({ ...request, url: 'https://server.example.com/token' }).kind, 'proofFault')
})

test('exactly one header with exactly one proof is accepted', () => {
  const { prover, check } = setUp()
  const [one, two] = [prover.proof(URL_HERE, TOKEN), prover.proof(URL_HERE, TOKEN)]
  assert.match(messageOf(check([])), /missing/)
  assert.match(messageOf(check([''])), /missing/)
  assert.match(messageOf(check([one, two])), /once/)
  assert.match(messageOf(check([`${one}, ${two}`])), /well-formed/)
  assert.match(messageOf(check([`${one}=`])), /well-formed/)
  assert.match(messageOf(check([`${one}.`])), /well-formed/)
  assert.match(messageOf(check(['x'.repeat(4097)])), /too long/)
})

test('a header without the form of a proof is refused', () => {
  const { prover, checkChanged } = setUp()
  const secret = { ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) }
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
  const cases: readonly (readonly [RegExp, Readonly<Record<string, unknown>>])[] = [
    [/"typ"/, { typ: undefined }],
    [/"typ"/, { typ: 'JWT' }],
    [/"typ"/, { typ: 'txntoken+jwt' }],
    [/"alg"/, { alg: 'none' }],
    [/"alg"/, { alg: 'HS256' }],
    [/"alg"/, { alg: 'RS256' }],
    [/"alg"/, { alg: 'Ed25519' }],
    [/"alg".*"jwk"/, { alg: 'ES256' }],
    [/"jwk"/, { jwk: undefined }],
    [/"jwk"/, { jwk: 'x' }],
    [/"jwk"/, { jwk: [prover.signer.publicJwk] }],
    [/"jwk"/, { jwk: { ...prover.signer.publicJwk, d: secret.d } }],
    [/"jwk"/, { jwk: { ...prover.signer.publicJwk, d: '' } }],
    [/"jwk"/, { jwk: { kty: 'oct', k: 'c2VjcmV0' } }],
    [/"jwk"/, { jwk: { ...prover.signer.publicJwk, alg: 'ES256' } }],
    [/"jwk"/, { jwk: { ...prover.signer.publicJwk, use: 'enc' } }],
    [/"jwk"/, { jwk: { ...prover.signer.publicJwk, x: `${prover.signer.publicJwk.x}=` } }],
    [/"jwk"/, { jwk: rsa }],
    [/"jwk"/, { jwk: x25519 }],
    [/"jwk"/, { jwk: p384 }],
    [/well-formed/, { crit: ['jwk'] }],
    [/well-formed/, { b64: false }],
    [/signature/, { jwk: testProver().signer.publicJwk }],
  ]
  for (const [message, header] of cases) {
    assert.match(messageOf(checkChanged({ header })), message, JSON.stringify(header))
  }
})

test('a proof not signed by its own key is refused', () => {
  const { prover, check } = setUp()
  const [header = '', payload = '', signature = ''] = prover.proof(URL_HERE, TOKEN).split('.')
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const hmacHead = encode({ typ: 'dpop+jwt', alg: 'HS256', jwk: prover.signer.publicJwk })
  const hmac = createHmac('sha256', String(prover.signer.publicJwk.x))
    .update(`${hmacHead}.${payload}`)
    .digest('base64url')
  const noneHead = encode({ typ: 'dpop+jwt', alg: 'none', jwk: prover.signer.publicJwk })
  const other = encode({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), jti: 'another' })
  for (const text of [
    `${hmacHead}.${payload}.${hmac}`,
    `${noneHead}.${payload}.`,
    `${header}.${payload}.`,
    `${header}.${other}.${signature}`,
    `${header}.${payload}.${signature.slice(0, 40)}`,
  ]) {
    assert.equal(check([text]).kind, 'proofFault', text)
  }
})

test('a proof for another request is refused', () => {
  const { checkChanged } = setUp()
  for (const htm of ['GET', 'post', '', undefined, 1]) {
    assert.match(messageOf(checkChanged({ claims: { htm } })), /"htm"/, String(htm))
  }
  for (const htu of [
    undefined,
    '',
    7,
    'https://id.example/v1/exchange',
    'https://id.example/v1/token/bind//',
    'https://evil.example/v1/token/bind',
    'http://id.example/v1/token/bind',
    'https://id.example:444/v1/token/bind',
    'https://user@id.example/v1/token/bind',
    'https://id.example/v1/token\\bind',
    '/v1/token/bind',
    'id.example/v1/token/bind',
  ]) {
    assert.match(messageOf(checkChanged({ claims: { htu } })), /"htu"/, String(htu))
  }
})

test('other spellings of the same URL match', () => {
  const { checkChanged } = setUp()
  for (const htu of [
    'HTTPS://ID.example/v1/token/bind',
    'https://id.example:443/v1/token/bind',
    'https://id.example/v1/token/bind?x=1',
    'https://id.example/v1/token/bind#part',
    'https://id.example/v1/./token/x/../bind',
    'https://id.example/v1/%74oken/bind',
    'https://id.example/v1/token/bind/',
  ]) {
    assertProof(checkChanged({ claims: { htu } }))
  }
  assert.equal(normalHtu('http://h'), normalHtu('http://H:80/'))
  assert.equal(normalHtu('http://h/a%2fb'), normalHtu('http://h/a%2Fb'))
  assert.notEqual(normalHtu('http://h/a%2fb'), normalHtu('http://h/a/b'))
  assert.equal(normalHtu('http://h/a/'), normalHtu('http://h/a'))
  assert.notEqual(normalHtu('http://h/a//'), normalHtu('http://h/a'))
})

test('normalization is idempotent for any text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string()), (text) => {
      const once = normalHtu(text)
      if (once !== null) assert.equal(normalHtu(once), once)
    }),
  )
})

test('a proof is valid around its creation: 60 s back, 5 s ahead', () => {
  const { clock, checkChanged } = setUp()
  const now = clock.now() / 1000
  for (const iat of [now - 60, now, now + 5]) assertProof(checkChanged({ claims: { iat } }))
  for (const iat of [now - 61, now + 6, undefined, String(now), now + 0.5, null, -1]) {
    assert.match(messageOf(checkChanged({ claims: { iat } })), /"iat"/, String(iat))
  }
})

test('a proof without a usable id is refused', () => {
  const { checkChanged } = setUp()
  for (const jti of [undefined, '', 5, 'x'.repeat(257), '\ud800']) {
    assert.match(messageOf(checkChanged({ claims: { jti } })), /"jti"/, String(jti))
  }
})

test('a hash of the token is checked when present, and must be present when required', () => {
  // Shows D1.bind.ath.
  const { prover, check } = setUp()
  const without = [prover.proof(URL_HERE)]
  assert.match(messageOf(check(without)), /"ath"/)
  assertProof(check(without, { ath: 'optional' }))
  const ofOther = [prover.proof(URL_HERE, testIssuer().token())]
  assert.match(messageOf(check(ofOther)), /"ath"/)
  assert.match(messageOf(check(ofOther, { ath: 'optional' })), /"ath"/)
})

test('of a hundred concurrent uses of one proof exactly one is fresh', async () => {
  const { prover, verifier, check } = setUp()
  const proof = check([prover.proof(URL_HERE, TOKEN)])
  assertProof(proof)
  const answers = await Promise.all(Array.from({ length: 100 }, () => verifier.use(proof, 'a')))
  assert.equal(answers.filter((answer) => answer === null).length, 1)
})

test('a proof cannot be replayed at any moment of its life, including one from the near future', async () => {
  const { clock, prover, verifier, check } = setUp()
  const headers = [prover.proof(URL_HERE, TOKEN, { claims: { iat: clock.now() / 1000 + 5 } })]
  const first = check(headers)
  assertProof(first)
  assert.equal(await verifier.use(first, 'a'), null)
  for (let second = 0; second < 80; second++) {
    await clock.advance(1000)
    const again = check(headers)
    if (again.kind === 'proof') assert.notEqual(await verifier.use(again, 'a'), null, `after ${second + 1} s`)
  }
})

test('two keys may use the same id', async () => {
  const { clock, verifier, check } = setUp()
  for (const prover of [testProver({ clock }), testProver({ clock })]) {
    const proof = check([prover.proof(URL_HERE, TOKEN, { claims: { jti: 'same' } })])
    assertProof(proof)
    assert.equal(await verifier.use(proof, 'a'), null)
  }
})

test('a caller that creates unlimited keys cannot fill the store for others', async () => {
  const clock = new TestClock()
  const pool = new SharedPool({ name: 'holder_proofs', total: 100, shares: [50] })
  const store = memoryReplayStore(clock, pool)
  const until = clock.now() + 65_000
  const use = (caller: string, jkt: string) => store.use({ jkt, jti: 'p', until, caller })
  for (let key = 0; key < 50; key++) assert.equal(await use('greedy', `key ${key}`), 'fresh')
  assert.equal(await use('greedy', 'another key'), 'full')
  assert.equal(await use('modest', 'key'), 'fresh')
  await clock.advance(65_000)
  assert.equal(await store.use({ jkt: 'k', jti: 'p', until: clock.now() + 65_000, caller: 'greedy' }), 'fresh')
  assert.equal(pool.used, 1)
})

for (const name of ['holder_proofs', 'dpop_proofs', 'proofs'] as const) {
  test(`a caller at its share of ${name} is refused while another is served`, async () => {
    const clock = new TestClock()
    const replays = memoryReplayStore(clock, new SharedPool({ name }))
    const use = (caller: string, n: number) =>
      replays.use({ jkt: 'key', jti: `${caller} ${n}`, until: clock.now() + 60_000, caller })
    const share = poolTable[name].shares[0].max
    for (let n = 0; n < share; n++) if ((await use('greedy', n)) !== 'fresh') assert.fail(`${n} of ${share}`)
    assert.deepEqual([await use('greedy', share), await use('modest', 0)], ['full', 'fresh'])
  })
}
