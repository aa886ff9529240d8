import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { Check, Default } from 'typebox/value'
import { isDenial } from '../../call/index.ts'
import { dpopBlock } from './config.ts'
import { startAuthenticator, type TestAuthenticatorSetup } from './testing/fixture.ts'

const URL_OF_NOTES = 'https://gateway.example/mcp/notes'

/** A session with a key-bound token, at a gateway with a public URL. */
async function setUp(t: TestContext, dpop: TestAuthenticatorSetup['dpop'] = {}) {
  const fixture = await startAuthenticator(t, { dpop: { publicURL: 'https://gateway.example', ...dpop } })
  const prover = testProver({ clock: fixture.clock })
  const token = fixture.issuer.token({ cnf: { jkt: prover.jkt } })
  /** Returns the code of the refusal, or null if the request passed. */
  const code = async (proof: string | undefined, scheme = 'DPoP') => {
    const answer = await fixture.answer({
      authorization: `${scheme} ${token}`,
      ...(proof !== undefined && { dpop: proof }),
    })
    return isDenial(answer) ? answer.code : null
  }
  return { ...fixture, prover, token, code }
}

test('a bound token is accepted with a proof by its key for this request', async (t) => {
  // Shows D3.dpop.publicURL.
  const { prover, token, code, proven, failed } = await setUp(t)
  assert.equal(await code(prover.proof(URL_OF_NOTES, token)), null)
  assert.equal(await code(prover.proof(`${URL_OF_NOTES}?a=b`, token), 'dpop'), null, 'the query is not part of it')
  assert.deepEqual([proven, failed], [['bound', 'bound'], []])
})

test('invalid proofs are refused and counted', async (t) => {
  const { prover, token, code, proven, failed, clock } = await setUp(t)
  const proof = (change: Parameters<typeof prover.proof>[2]) => prover.proof(URL_OF_NOTES, token, change)
  assert.equal(await code(undefined), 'invalid_dpop_proof')
  assert.equal(proven.pop(), 'missing')
  const wrong = {
    'another method': proof({ claims: { htm: 'GET' } }),
    'another server': prover.proof('https://gateway.example/mcp/other', token),
    'another host': prover.proof('https://elsewhere.example/mcp/notes', token),
    'another token': prover.proof(URL_OF_NOTES, `${token}x`),
    'no hash of the token': prover.proof(URL_OF_NOTES),
    'another key': testProver({ clock }).proof(URL_OF_NOTES, token),
    'two proofs': `${proof({})}, ${proof({})}`,
    'too old': proof({ claims: { iat: Math.floor(clock.now() / 1000) - 61 } }),
    'too young': proof({ claims: { iat: Math.floor(clock.now() / 1000) + 6 } }),
  }
  for (const [name, text] of Object.entries(wrong)) {
    assert.equal(await code(text), 'invalid_dpop_proof', name)
    assert.equal(proven.pop(), 'invalid', name)
    assert.equal(failed.pop(), 'binding', name)
  }
})

test('a proof is accepted once during its lifetime', async (t) => {
  const { prover, token, code, proven, clock } = await setUp(t)
  const proof = prover.proof(URL_OF_NOTES, token)
  assert.equal(await code(proof), null)
  await clock.advance(59_000)
  assert.equal(await code(proof), 'invalid_dpop_proof')
  assert.deepEqual(proven, ['bound', 'replayed'])
})

test('only one of two concurrent equal proofs is accepted', async (t) => {
  const { prover, token, code } = await setUp(t)
  const proof = prover.proof(URL_OF_NOTES, token)
  assert.deepEqual((await Promise.all([code(proof), code(proof)])).sort(), ['invalid_dpop_proof', null])
})

test('maxAgeSeconds is the age of proofs, also when it is 0', async (t) => {
  // Shows D3.dpop.maxAgeSeconds, D3.limit.dpopAge.
  const { prover, token, code, clock } = await setUp(t, { maxAgeSeconds: 600 })
  const aged = (seconds: number) =>
    prover.proof(URL_OF_NOTES, token, { claims: { iat: Math.floor(clock.now() / 1000) - seconds } })
  assert.equal(await code(aged(600)), null)
  assert.equal(await code(aged(601)), 'invalid_dpop_proof')
  const now = await setUp(t, { maxAgeSeconds: 0 })
  const claims = { iat: Math.floor(now.clock.now() / 1000) }
  assert.equal(await now.code(now.prover.proof(URL_OF_NOTES, now.token, { claims })), null)
  const before = { iat: claims.iat - 1 }
  assert.equal(await now.code(now.prover.proof(URL_OF_NOTES, now.token, { claims: before })), 'invalid_dpop_proof')
  const block = (maxAgeSeconds: number) => Check(dpopBlock.schema, { require: false, maxAgeSeconds, publicURL: '' })
  assert.deepEqual([block(600), block(601), block(-1)], [true, false, false])
  assert.equal(Default(dpopBlock.schema.properties.maxAgeSeconds, undefined), 60)
})

test('a bound token is never accepted as a bearer token, not even with a proof', async (t) => {
  const { prover, token, code, answer, proven } = await setUp(t)
  assert.equal(await code(undefined, 'Bearer'), 'dpop_required')
  assert.equal(await code(prover.proof(URL_OF_NOTES, token), 'Bearer'), 'dpop_required')
  assert.deepEqual(proven, ['missing', 'missing'])
  const denial = await answer({ authorization: `Bearer ${token}` })
  assert.ok(isDenial(denial))
  assert.match(String(denial.data?.challenge), /^DPoP algs="EdDSA ES256", error="invalid_token", error_description="/)
})

test('an unbound token is accepted only as a bearer token, and not where proofs are required', async (t) => {
  // Shows D3.dpop.require, D3.metric.plat_gateway_dpop_requests_total.
  for (const require of [false, true]) {
    const { issuer, answer, proven, failed } = await setUp(t, { require })
    const token = issuer.token()
    const code = async (scheme: string) => {
      const denial = await answer({ authorization: `${scheme} ${token}` })
      return isDenial(denial) ? denial.code : null
    }
    assert.equal(await code('Bearer'), require ? 'dpop_required' : null)
    assert.equal(await code('DPoP'), require ? 'dpop_required' : 'unauthenticated')
    assert.deepEqual(proven, ['unbound', 'unbound'])
    assert.deepEqual(failed, require ? ['binding', 'binding'] : ['binding'])
  }
})

test('a required proof is accepted', async (t) => {
  const { prover, token, code } = await setUp(t, { require: true })
  assert.equal(await code(prover.proof(URL_OF_NOTES, token)), null)
})

test('without a public URL every proof is refused, because callers choose the Host header', async (t) => {
  const { prover, token, code } = await setUp(t, { publicURL: '' })
  assert.equal(await code(prover.proof(URL_OF_NOTES, token)), 'invalid_dpop_proof')
})

test('the public address defaults to that of the resources, and may have a path', async (t) => {
  const fixture = await startAuthenticator(t, { config: { resourceBaseURL: 'https://gateway.example/plat/' } })
  const prover = testProver({ clock: fixture.clock, alg: 'ES256' })
  const token = fixture.issuer.token({ cnf: { jkt: prover.jkt } })
  const dpop = prover.proof('https://gateway.example/plat/mcp/notes', token)
  assert.ok(!isDenial(await fixture.answer({ authorization: `DPoP ${token}`, dpop })))
})
