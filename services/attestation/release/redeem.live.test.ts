import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { until } from '@plat/testkit/until'
import {
  type AttestationParties,
  askBroker,
  claimsIn,
  createParties,
  GOOD,
  OTHER,
  startFixture,
  text,
} from '../testing/fixture.ts'

let parties: AttestationParties
before(async () => {
  parties = await createParties()
})
after(() => parties.broker.stop())

const failures = (reason: string) => `plat_attest_failure_total{reason="${reason}"}`

test('a release is redeemed with evidence, for a token bound to the key of the evidence', async (t) => {
  // Shows D3.metric.plat_attest_success_total, D3.metric.plat_attest_releases_created_total,
  // D3.metric.plat_attest_releases_pending, D3.metric.plat_attest_renewals_active.
  const fixture = await startFixture(t, parties)
  assert.equal(await fixture.metric('plat_attest_success_total'), 0)
  const releaseId = await fixture.release('good')
  assert.deepEqual(
    [await fixture.metric('plat_attest_releases_created_total'), await fixture.metric('plat_attest_releases_pending')],
    [1, 1],
  )
  const workload = fixture.workload(releaseId)
  const { status, body } = await workload.redeem()
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.tokenType, 'DPoP')
  assert.deepEqual(Object.keys(body).sort(), [
    ...['expiresAt', 'jti', 'renewAt', 'spiffeId', 'substrate', 'token', 'tokenType'],
  ])
  const claims = claimsIn(body.token)
  const substrate = { check: 'tee', attestation: 'sev-snp', isolation: 'tee', digest: GOOD }
  assert.deepEqual(
    [claims.plat_session, claims.plat_tier, claims.scope, claims.cnf, claims.plat_substrate, claims.jti],
    ['good', 'tier-2', 'tools:notes', { jkt: workload.prover.jkt }, substrate, body.jti],
  )
  assert.ok(text(body.renewAt) < text(body.expiresAt))
  for (const [series, value] of Object.entries({
    plat_attest_success_total: 1,
    plat_attest_releases_pending: 0,
    plat_attest_renewals_active: 1,
  })) {
    assert.equal(await fixture.metric(series), value, series)
  }
})

test('each reason why evidence releases nothing is returned, counted and recorded', async (t) => {
  // Shows D3.metric.plat_attest_failure_total.
  const fixture = await startFixture(t, parties)
  const releaseId = await fixture.release('refused')
  const workload = fixture.workload(releaseId)
  const other = fixture.workload(await fixture.release('refused-other'))
  const refused = async (reason: string, ask: () => Promise<{ status: number; body: object }>) => {
    const before = (await fixture.metric(failures(reason))) ?? 0
    const { status, body } = await ask()
    assert.equal('error' in body && body.error, reason, JSON.stringify(body))
    assert.equal(await fixture.metric(failures(reason)), before + 1)
    assert.ok('message' in body && 'requestId' in body)
    return [status, String(body.message)] as const
  }
  assert.equal(await fixture.metric(failures('evidence_refused')), null)
  const used = await workload.prove()
  assert.equal(
    (await refused('evidence_refused', () => workload.redeem({ ...used, evidence: { kind: 'sgx' } })))[0],
    403,
  )
  assert.equal((await refused('invalid_nonce', () => workload.redeem(used)))[0], 403)
  const evidence = async (overrides: Parameters<typeof workload.prove>[0], reason: RegExp) => {
    const [status, message] = await refused('evidence_refused', async () =>
      workload.redeem(await workload.prove(overrides)),
    )
    assert.equal(status, 403)
    assert.match(message, reason)
  }
  await evidence({ by: parties.stranger }, /no anchor/)
  await evidence({ certificate: { notAfter: Date.now() - 1000 } }, /expired/)
  await evidence({ measurement: 'ef'.repeat(48) }, /launched/)
  await evidence({ report: (bytes) => bytes.fill(8, 0x0a, 0x0b) }, /debugging/)
  const another = await workload.prove({ nonce: 'a'.repeat(32) })
  const { body } = await workload.challenge()
  const [, forNonce] = await refused('evidence_refused', () => workload.redeem({ ...another, nonce: body.nonce }))
  assert.match(forNonce, /another nonce/)
  const measured = await refused('measurement_refused', async () =>
    workload.redeem(await workload.prove({ measurement: OTHER })),
  )
  assert.equal(measured[0], 403)
  // The nonce of another session, and of another key.
  assert.equal((await refused('invalid_nonce', async () => workload.redeem(await other.prove())))[0], 403)
  const thief = fixture.workload(releaseId)
  assert.equal((await refused('invalid_nonce', async () => thief.redeem(await workload.prove())))[0], 403)
  assert.equal((await refused('unknown_release', () => fixture.workload('r'.repeat(32)).redeem(used)))[0], 404)
  const unsigned = () => fixture.post('/v1/redeem', { releaseId, proof: used }, {})
  assert.equal((await refused('invalid_key', unsigned))[0], 401)
  assert.equal((await refused('invalid_request', () => workload.redeem({ check: 'tee' })))[0], 400)
  assert.equal((await refused('invalid_request', () => fixture.post('/v1/redeem', '{"releaseId":1}', {})))[0], 400)
  assert.equal(await fixture.metric('plat_attest_success_total'), 0)
  assert.equal(await fixture.metric('plat_attest_releases_pending'), 2)
  assert.equal((await workload.redeem()).status, 200, 'what was refused does not stand in the way of what is right')
})

test('the first key wins, and only it may redeem again', async (t) => {
  const fixture = await startFixture(t, parties)
  const releaseId = await fixture.release('first', { digests: [] })
  const [first, second] = [fixture.workload(releaseId), fixture.workload(releaseId)]
  const late = await second.prove()
  const { body } = await first.redeem()
  assert.equal((await second.redeem(late)).body.error, 'other_key')
  assert.equal((await second.challenge()).body.error, 'other_key')
  assert.equal(await fixture.metric(failures('other_key')), 1)
  const again = await first.redeem()
  assert.equal(again.status, 200)
  assert.notEqual(again.body.jti, body.jti)
  const elsewhere = await first.redeem(await first.prove({ measurement: OTHER }))
  assert.equal(elsewhere.body.error, 'platform_changed', 'both measurements may redeem, but not one after the other')
  assert.equal(await fixture.metric('plat_attest_renewals_active'), 1)
})

test('of many concurrent keys exactly one redeems', async (t) => {
  const fixture = await startFixture(t, parties)
  const releaseId = await fixture.release('race')
  const workloads = Array.from({ length: 6 }, () => fixture.workload(releaseId))
  const proofs = await Promise.all(workloads.map((workload) => workload.prove()))
  const answers = await Promise.all(workloads.map((workload, n) => workload.redeem(proofs[n])))
  const ended = answers.map(({ status, body }) => (status === 200 ? 'redeemed' : text(body.error)))
  assert.equal(ended.filter((each) => each === 'redeemed').length, 1, ended.join(' '))
  assert.ok(
    ended.every((each) => ['redeemed', 'busy', 'other_key'].includes(each)),
    ended.join(' '),
  )
})

test('a nonce is good for five minutes', async (t) => {
  const fixture = await startFixture(t, parties)
  const workload = fixture.workload(await fixture.release('late'))
  const proof = await workload.prove()
  await fixture.clock.advance(300_000)
  assert.equal((await workload.redeem(proof)).body.error, 'invalid_nonce')
  assert.equal((await workload.redeem()).status, 200)
})

test('challenges are issued for the checks of the release, to clients with a key, up to a limit', async (t) => {
  const fixture = await startFixture(t, parties)
  const releaseId = await fixture.release('challenge')
  const workload = fixture.workload(releaseId)
  assert.equal((await workload.challenge('spiffe')).body.error, 'check_refused')
  assert.equal((await fixture.workload('unknown').challenge()).body.error, 'unknown_release')
  const stray = testProver({ clock: fixture.clock })
  const wrong = await fixture.post(
    '/v1/challenge',
    { releaseId, check: 'tee' },
    { dpop: stray.proof('https://elsewhere.example/v1/challenge') },
  )
  assert.deepEqual([wrong.status, wrong.body.error], [401, 'invalid_key'])
  assert.match(wrong.headers.get('www-authenticate') ?? '', /^DPoP algs="EdDSA ES256"/)
  const statuses: number[] = []
  for (let n = 0; n < 33; n++) statuses.push((await workload.challenge()).status)
  assert.deepEqual([statuses.lastIndexOf(200), statuses.indexOf(429)], [31, 32])
  await fixture.clock.advance(300_000)
  assert.equal((await workload.challenge()).status, 200)
  const unable = fixture.workload(await fixture.release('unable', { checks: ['spiffe'] }))
  const { status, body } = await unable.challenge('spiffe')
  assert.deepEqual([status, body.message], [400, 'check spiffe: unknown proof check'])
})

test('a revoked session gets no token, and a suspended one has to wait', async (t) => {
  const fixture = await startFixture(t, parties)
  const workload = fixture.workload(await fixture.release('revoked'))
  const { body } = await workload.redeem()
  t.after(() => parties.revoke(null))
  const verdict = async () => (await askBroker(parties, '/v1/token/verify', { token: body.token })).body.error
  parties.revoke({ session: 'team/assistant/revoked' })
  await until(async () => (await verdict()) === 'token is revoked', 'the broker to see the revocation')
  assert.equal((await workload.redeem()).body.error, 'session_revoked')
  parties.revoke({ session: 'team/assistant/revoked' }, 'suspend')
  await until(async () => (await verdict()) === 'token is suspended', 'the broker to see the suspension')
  const { status, body: waits } = await workload.redeem()
  assert.deepEqual([status, waits.error, waits.message], [503, 'unavailable', 'the session is suspended: try again'])
})
