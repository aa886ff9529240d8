import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { ephemeralSigner, type MldsaName } from '@plat/keys'
import { TEST_AUDIENCE, TEST_ISSUER, TEST_TRUST_DOMAIN, testIssuer } from '@plat/testkit/identity'
import {
  CLASSICAL_AND_ML_DSA,
  createVerifier,
  isFault,
  KeySet,
  parseJws,
  type SessionClaims,
  signJws,
  staticSource,
  type VerificationResult,
} from './index.ts'

function setUp() {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const options = {
    issuer: TEST_ISSUER,
    audience: TEST_AUDIENCE,
    leewaySeconds: 30,
    trustDomain: TEST_TRUST_DOMAIN,
    clock,
  }
  const verifier = createVerifier({ keys: issuer.keys, ...options })
  const reason = (token: string) => {
    const answer = verifier.verify(token)
    assert.ok(!(answer instanceof Promise), 'a known key answers at once')
    return isFault(answer) ? answer.reason : 'valid'
  }
  return { clock, issuer, options, verifier, reason }
}

function claimsOf(answer: VerificationResult | Promise<VerificationResult>): SessionClaims {
  assert.ok(!(answer instanceof Promise), 'a known key answers at once')
  assert.ok(!isFault(answer), JSON.stringify(answer))
  return answer
}

test('every claim of a full token is decoded', () => {
  // Shows D1.claim.actNested, D1.claim.plat_parent_jti, D1.claim.plat_delegator_jti.
  const { issuer, verifier } = setUp()
  const caller = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/planner/session/p`
  const jkt = issuer.signer.kid
  const claims = claimsOf(
    verifier.verify(
      issuer.token({
        aud: ['other', TEST_AUDIENCE],
        act: { sub: caller, act: { sub: 'user:ada lovelace' } },
        scope: 'tools:notes agents:planner',
        plat_groups: 'a b',
        plat_principal_verified: 'idToken',
        plat_parent_jti: 'p1',
        plat_delegator_jti: 'd1',
        plat_delegation_jtis: ['d1', 'd2'],
        plat_fork_root: 'root',
        plat_inherited_taints: 'untrusted-input',
        cnf: { jkt },
      }),
    ),
  )
  assert.equal(claims.user, 'ada lovelace')
  assert.deepEqual(claims.actors, [caller])
  assert.deepEqual(claims.scopes, ['tools:notes', 'agents:planner'])
  assert.deepEqual(claims.groups, ['a', 'b'])
  assert.equal(claims.principalVerified, 'idToken')
  assert.deepEqual([claims.parentJti, claims.delegatorJti, claims.delegationJtis], ['p1', 'd1', ['d1', 'd2']])
  assert.deepEqual([claims.forkRoot, claims.inheritedTaints, claims.jkt], ['root', ['untrusted-input'], jkt])
})

test('every kind of invalid token is refused for its reason', () => {
  // Shows D1.header.otherAlgorithmsRejected, D1.header.transactionTokenRefused, D1.claim.subMatchesClaims.
  const { issuer, reason } = setUp()
  for (const { name, token, reason: expected } of issuer.invalid()) assert.equal(reason(token), expected, name)
})

test('expiry has exactly the configured leeway, cached or not', async () => {
  const { clock, issuer, reason } = setUp()
  const token = issuer.token()
  for (const time of ['met', 'remembered', 'recalled']) assert.equal(reason(token), 'valid', time)
  await clock.advance((900 + 29) * 1000 + 999)
  assert.equal(reason(token), 'valid')
  await clock.advance(1)
  assert.equal(reason(token), 'expired')
})

test('a token is cached when it is presented again: one presented once leaves no claims behind', () => {
  const { issuer, verifier } = setUp()
  const token = issuer.token()
  const [first, second, third] = [verifier.verify(token), verifier.verify(token), verifier.verify(token)].map(claimsOf)
  assert.notEqual(first, second)
  assert.equal(second, third)
})

test('a cached token is dropped at its expiry, not five minutes later', async () => {
  const { clock, issuer, reason } = setUp()
  const now = Math.floor(clock.now() / 1000)
  const token = issuer.token({ exp: now + 10 })
  for (const time of ['met', 'remembered', 'recalled']) assert.equal(reason(token), 'valid', time)
  await clock.advance(40_000)
  assert.equal(reason(token), 'expired')
})

test('a token without kid is accepted with a single trusted key only', () => {
  // Shows D1.header.noKidOnlyWithOneKey.
  const { issuer, options, reason } = setUp()
  const token = issuer.token({}, { kid: undefined })
  assert.equal(reason(token), 'valid')
  const two = createVerifier({ ...options, keys: staticSource([issuer.signer.publicKey, ephemeralSigner().publicKey]) })
  assert.deepEqual(two.verify(token), {
    kind: 'fault',
    reason: 'kid',
    message: 'token is signed by no key that is trusted',
  })
})

test('cached tokens of a key that is no longer trusted are refused', () => {
  const { issuer, options } = setUp()
  const keys = new KeySet([issuer.signer.publicKey])
  const verifier = createVerifier({ ...options, keys })
  const token = issuer.token()
  for (let times = 0; times < 3; times++) claimsOf(verifier.verify(token))
  keys.replace([])
  for (const time of ['at once', 'and again']) {
    const answer = verifier.verify(token)
    assert.ok('reason' in answer && answer.reason === 'kid', time)
  }
})

test('a cached token is not valid for another audience', () => {
  const { issuer, verifier } = setUp()
  const token = issuer.token()
  for (let times = 0; times < 3; times++) claimsOf(verifier.verify(token))
  const answer = verifier.verify(token, 'another')
  assert.ok('reason' in answer && answer.reason === 'audience')
})

test('issuer and trust domain are not checked when they are not configured', () => {
  const { issuer, clock } = setUp()
  const open = createVerifier({ keys: issuer.keys, issuer: '', audience: TEST_AUDIENCE, leewaySeconds: 0, clock })
  const sub = 'spiffe://elsewhere/ns/default/agent/assistant/session/s1'
  assert.equal(claimsOf(open.verify(issuer.token({ iss: 'anybody', sub }))).trustDomain, 'elsewhere')
})

const ML_DSA_NAMES: readonly MldsaName[] = ['ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87']

test('ML-DSA tokens are accepted when they are enabled, and refused otherwise', () => {
  // Shows D1.header.alg, D1.header.otherAlgorithmsRejected.
  const { issuer, options } = setUp()
  for (const name of ML_DSA_NAMES) {
    const signer = ephemeralSigner(name)
    const token = signJws(signer, {}, issuer.claims())
    const verified = (enabled: boolean) => {
      const algorithms = enabled ? CLASSICAL_AND_ML_DSA : undefined
      const keys = new KeySet([signer.publicKey, issuer.signer.publicKey], algorithms)
      return createVerifier({ ...options, keys, ...(algorithms === undefined ? {} : { algorithms }) }).verify(token)
    }
    assert.equal(claimsOf(verified(true)).keyThumbprint, signer.kid, name)
    assert.deepEqual(
      verified(false),
      { kind: 'fault', reason: 'signature', message: 'token algorithm is not accepted' },
      name,
    )
  }
})

test('the algorithm of a header must be that of the key that it names', () => {
  const { issuer, options } = setUp()
  const signer = ephemeralSigner('ML-DSA-65')
  const keys = new KeySet([signer.publicKey, issuer.signer.publicKey], CLASSICAL_AND_ML_DSA)
  const verifier = createVerifier({ ...options, keys, algorithms: CLASSICAL_AND_ML_DSA })
  const refused = { kind: 'fault', reason: 'signature', message: 'token algorithm is not that of its key' }
  for (const alg of ['EdDSA', 'ML-DSA-44', 'ML-DSA-87']) {
    assert.deepEqual(verifier.verify(signJws(signer, { alg }, issuer.claims())), refused, alg)
  }
  assert.deepEqual(verifier.verify(issuer.token({}, { alg: 'ML-DSA-65' })), refused)
})

test('keys for ES256 and RS256 verify no session, whatever a source states', () => {
  const { issuer, options } = setUp()
  for (const name of ['ES256', 'RS256'] as const) {
    const signer = ephemeralSigner(name)
    const keys = new KeySet([signer.publicKey], CLASSICAL_AND_ML_DSA)
    assert.equal(keys.size, 0)
    const answer = createVerifier({ ...options, keys, algorithms: CLASSICAL_AND_ML_DSA }).verify(
      signJws(signer, {}, issuer.claims()),
    )
    assert.ok('reason' in answer && answer.reason === 'signature', name)
  }
})

test('headers that name keys are ignored: nothing is fetched and the trusted key decides', () => {
  const { issuer, reason } = setUp()
  const token = issuer.token(
    {},
    { jku: 'http://127.0.0.1:1/jwks', x5u: 'http://127.0.0.1:1/x', jwk: ephemeralSigner().publicJwk },
  )
  assert.equal(reason(token), 'valid')
})

test('a JWS that is written parses to the same content', () => {
  const signer = ephemeralSigner()
  const jws = parseJws(signJws(signer, { typ: 'JWT' }, { a: 'ü' }))
  assert.ok('payload' in jws)
  assert.deepEqual(jws.payload, { a: 'ü' })
  assert.deepEqual([jws.header.alg, jws.header.kid, jws.header.typ], ['EdDSA', signer.kid, 'jwt'])
  assert.ok(signer.publicKey.algorithm.verify(jws.input, signer.publicKey.key, jws.signature))
})
