import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { startTestIdentity } from '@plat/testkit/identity'
import { boundNonce } from '@plat/tokens'
import { base, claimsIn, startTestBroker, text } from '../testing/broker.ts'
import type { Proof, ProofCheck, ProofContext, ProofVerdict } from './check.ts'

/** A check whose verdict is chosen by the `token` of its proof, and which records its inputs. */
function check(name: string, nonce: ProofCheck['nonce']) {
  const seen: { proof: Proof; context: ProofContext }[] = []
  const verdicts: Readonly<Record<string, ProofVerdict>> = {
    good: {
      kind: 'established',
      substrate: { check: name, sandbox: 'box-1', isolation: 'gvisor', attestation: 'none' },
    },
    bad: { kind: 'failed', reason: 'the pod is gone' },
    dark: { kind: 'unreachable', reason: 'no answer from the API server' },
  }
  const proofCheck: ProofCheck = {
    name,
    nonce,
    async verify(proof, context) {
      seen.push({ proof, context })
      const verdict = verdicts[proof.token ?? '']
      if (verdict === undefined) throw new Error('the secret inside of the check')
      return verdict
    },
  }
  return { seen, proofCheck }
}

const plain = check('plain', 'none')
const nonced = check('nonced', 'required')
const maybe = check('maybe', 'optional')
const checks = [plain.proofCheck, nonced.proofCheck, check('other', 'required').proofCheck, maybe.proofCheck]

test('the facts that a proof establishes are in the token and in the response', async (t) => {
  // Shows D1.mint.proof, D1.mint.response.substrate, D1.claim.plat_substrate, D1.claim.plat_substrate.check,
  // D1.claim.plat_substrate.sandbox, D1.claim.plat_substrate.isolation, D1.claim.plat_substrate.attestation.
  const { post, verify } = await startTestBroker(t, { checks })
  const proof = { check: 'plain', token: 'good', sandbox: 'box-1' }
  const { status, body } = await post('/v1/token', { ...base, proof })
  assert.equal(status, 200)
  const substrate = { check: 'plain', sandbox: 'box-1', isolation: 'gvisor', attestation: 'none' }
  assert.deepEqual(body.substrate, substrate)
  assert.deepEqual(claimsIn(body.token).plat_substrate, substrate)
  assert.equal((await verify(text(body.token))).valid, true)
  const { proof: presented, context } = plain.seen.at(-1) ?? assert.fail('the check was not called')
  assert.deepEqual([presented.sandbox, presented.token, presented.nonce], ['box-1', 'good', null])
  assert.deepEqual(context, { ...base, clientCertificate: null })
  const without = await post('/v1/token', base)
  assert.equal(without.status, 200)
  assert.ok(!('substrate' in without.body) && !('plat_substrate' in claimsIn(without.body.token)))
})

test('an unknown check is 400, a failed one 403, one that cannot decide 503', async (t) => {
  // Shows D1.error.token.400.unknownProofCheck, D1.error.token.403.proofFailed, D1.error.token.503.trustAnchors.
  const { post, lines } = await startTestBroker(t, { checks })
  const mint = async (proof: object) => {
    const { status, body } = await post('/v1/token', { ...base, proof })
    return [status, body.error]
  }
  assert.deepEqual(await mint({ check: 'unheard' }), [400, 'unknown proof check'])
  assert.deepEqual(await mint({ check: '__proto__' }), [400, 'unknown proof check'])
  assert.deepEqual(await mint({ check: 'plain', token: 'bad' }), [403, 'proof failed: the pod is gone'])
  assert.deepEqual(await mint({ check: 'plain', token: 'dark' }), [
    503,
    'proof check unavailable: no answer from the API server',
  ])
  assert.deepEqual(await mint({ check: 'plain', token: 'throws' }), [
    503,
    'proof check unavailable: the check failed to run',
  ])
  assert.deepEqual(await mint({ check: 'plain', nonce: 'x' }), [400, 'invalid proof: this check takes no nonce'])
  assert.ok(lines.some((line) => line.includes('"outcome":"refused"') && line.includes('the pod is gone')))
})

test('a mint without proof is refused when one is required', async (t) => {
  // Shows D1.error.token.403.proofRequired.
  const { post } = await startTestBroker(t, { checks, requireProof: true })
  const { status, body } = await post('/v1/token', base)
  assert.deepEqual([status, body.error], [403, 'a proof is required'])
  assert.equal((await post('/v1/token', { ...base, proof: { check: 'plain', token: 'good' } })).status, 200)
})

test('the flag -require-proof makes the broker refuse a mint without proof', async (t) => {
  // Shows D1.flag.require-proof.
  const statusWith = async (...flags: string[]) => {
    const broker = await startTestIdentity(flags)
    t.after(() => broker.stop())
    const headers = { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' }
    const response = await fetch(`${broker.url}/v1/token`, { method: 'POST', headers, body: JSON.stringify(base) })
    return [response.status, Object(await response.json()).error]
  }
  assert.deepEqual(await statusWith('-require-proof'), [403, 'a proof is required'])
  assert.deepEqual(await statusWith(), [200, undefined])
})

test('a nonce is good once, for its check, for five minutes', async (t) => {
  // Shows D1.service.issuesNonces, D1.endpoint.proof.nonce, D1.nonce.check, D1.nonce.response.check,
  // D1.nonce.response.nonce, D1.nonce.response.expiresAt, D1.nonce.singleUse.
  const { clock, post } = await startTestBroker(t, { checks })
  const issue = async (name: string) => (await post('/v1/proof/nonce', { check: name })).body
  const mint = async (name: string, nonce: unknown) =>
    (await post('/v1/token', { ...base, proof: { check: name, token: 'good', nonce } })).status
  const issued = await issue('nonced')
  assert.deepEqual(Object.keys(issued), ['check', 'nonce', 'expiresAt'])
  assert.deepEqual([issued.check, issued.expiresAt], ['nonced', '2026-01-01T00:05:00Z'])
  assert.match(text(issued.nonce), /^[a-z2-7]{32}$/)
  assert.deepEqual([await mint('nonced', issued.nonce), await mint('nonced', issued.nonce)], [200, 403])
  const ofOther = (await issue('other')).nonce
  assert.deepEqual([await mint('nonced', ofOther), await mint('other', ofOther)], [403, 403])
  assert.deepEqual([await mint('nonced', 'made up'), await mint('nonced', undefined)], [403, 403])
  const late = (await issue('nonced')).nonce
  await clock.advance(299_999)
  const inTime = (await issue('nonced')).nonce
  await clock.advance(1)
  assert.deepEqual([await mint('nonced', late), await mint('nonced', inTime)], [403, 200])
})

test('of many mints with one nonce at the same time exactly one succeeds', async (t) => {
  const { post } = await startTestBroker(t, { checks })
  const { nonce } = (await post('/v1/proof/nonce', { check: 'nonced' })).body
  const mint = () => post('/v1/token', { ...base, proof: { check: 'nonced', token: 'good', nonce } })
  const statuses = (await Promise.all(Array.from({ length: 30 }, mint))).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1)
  assert.equal(statuses.filter((status) => status === 403).length, 29)
})

test('a proof that fails has used its nonce up', async (t) => {
  const { post } = await startTestBroker(t, { checks })
  const { nonce } = (await post('/v1/proof/nonce', { check: 'nonced' })).body
  const mint = async (token: string) =>
    (await post('/v1/token', { ...base, proof: { check: 'nonced', token, nonce } })).body.error
  assert.equal(await mint('bad'), 'proof failed: the pod is gone')
  assert.match(text(await mint('good')), /its nonce is unknown, used/)
})

test('a nonce is refused for a check that issues none, for an unknown check, and without the broker token', async (t) => {
  // Shows D1.nonce.checkWithoutNonces, D1.error.nonce.400.
  const { post } = await startTestBroker(t, { checks })
  const ask = async (body: unknown) => {
    const answer = await post('/v1/proof/nonce', body)
    return [answer.status, answer.body.error]
  }
  assert.deepEqual(await ask({ check: 'plain' }), [400, 'this check issues no nonces'])
  assert.deepEqual(await ask({ check: 'unheard' }), [400, 'unknown proof check'])
  assert.deepEqual(await ask({}), [400, 'check is required'])
  assert.deepEqual(await ask({ check: 'nonced', extra: 1 }), [400, 'invalid JSON: unknown field "extra"'])
  assert.equal((await post('/v1/proof/nonce', { check: 'nonced' }, { authorization: 'Bearer x' })).status, 401)
})

test('a nonce of a key proves nothing for another one, and is bound to its own', async (t) => {
  const { post } = await startTestBroker(t, { checks })
  const [mine, other] = [ephemeralSigner().kid, ephemeralSigner().kid]
  const issue = async () => (await post('/v1/proof/nonce', { check: 'nonced', dpopJkt: mine })).body
  const mint = async (nonce: unknown, dpopJkt?: string) => {
    const { status, body } = await post('/v1/token', {
      ...base,
      dpopJkt,
      proof: { check: 'nonced', token: 'good', nonce },
    })
    return [status, body.error]
  }
  const { nonce, salt } = await issue()
  assert.equal(nonce, boundNonce(text(salt), mine))
  assert.notEqual(nonce, boundNonce(text(salt), other))
  const refusal = [403, 'proof failed: its nonce is not bound to the key of the token']
  assert.deepEqual(await mint(nonce, other), refusal)
  assert.deepEqual((await mint(nonce, mine))[0], 403, 'a mint for another key has used it up')
  assert.deepEqual(await mint((await issue()).nonce), refusal)
  assert.deepEqual(await mint((await issue()).nonce, mine), [200, undefined])
  const ask = async (body: object) => (await post('/v1/proof/nonce', body)).body.error
  assert.match(text(await ask({ check: 'maybe', dpopJkt: mine })), /proves nothing about a key/)
  assert.equal(await ask({ check: 'nonced', dpopJkt: 'x' }), 'bad dpopJkt')
})

test('a token of an attested tier is minted with a proof over a nonce of its key, and in no other way', async (t) => {
  const { post } = await startTestBroker(t, { checks, attestedTiers: ['tier-2'] })
  const jkt = ephemeralSigner().kid
  const mint = async (more: object) => {
    const { status, body } = await post('/v1/token', { ...base, tier: 'tier-2', ...more })
    return [status, body.error]
  }
  const issue = async (more: object = {}) => (await post('/v1/proof/nonce', { check: 'nonced', ...more })).body.nonce
  assert.deepEqual(await mint({}), [403, 'a proof is required'])
  assert.match(text((await mint({ proof: { check: 'plain', token: 'good' } }))[1]), /proves nothing about a key/)
  assert.match(text((await mint({ proof: { check: 'maybe', token: 'good' } }))[1]), /proves nothing about a key/)
  const free = { check: 'nonced', token: 'good', nonce: await issue() }
  assert.match(text((await mint({ dpopJkt: jkt, proof: free }))[1]), /not bound to the key/)
  const bound = { check: 'nonced', token: 'good', nonce: await issue({ dpopJkt: jkt }) }
  assert.deepEqual(await mint({ dpopJkt: jkt, proof: bound }), [200, undefined])
  assert.deepEqual(await mint({ tier: 'tier-1' }), [200, undefined])
})

test('two checks of one name do not start', async (t) => {
  await assert.rejects(startTestBroker(t, { checks: [plain.proofCheck, plain.proofCheck] }), /plainis listed twice/)
})
