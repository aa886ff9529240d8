import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import path from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import {
  type AttestationFixture,
  type AttestationParties,
  askBroker,
  claimsIn,
  createParties,
  OTHER,
  SERVICE_TOKEN,
  startFixture,
  terms,
  text,
  type Workload,
} from '../testing/fixture.ts'

let parties: AttestationParties
before(async () => {
  parties = await createParties()
})
after(() => parties.broker.stop())

const failures = (reason: string) => `plat_attest_renewal_failure_total{reason="${reason}"}`

interface Session {
  readonly workload: Workload
  readonly releaseId: string
  readonly token: string
}

async function redeemed(fixture: AttestationFixture, session: string, more: object = {}): Promise<Session> {
  const releaseId = await fixture.release(session, more)
  const workload = fixture.workload(releaseId)
  const { status, body } = await workload.redeem()
  assert.equal(status, 200, JSON.stringify(body))
  return { workload, releaseId, token: text(body.token) }
}

test('a token is renewed with fresh evidence of the same platform by the same key', async (t) => {
  // Shows D3.metric.plat_attest_renewal_success_total, D3.metric.plat_attest_renewals_active.
  const fixture = await startFixture(t, parties)
  const { workload, token, releaseId } = await redeemed(fixture, 'renewed')
  const { status, body } = await workload.renew(token)
  assert.equal(status, 200, JSON.stringify(body))
  const [before, now] = [claimsIn(token), claimsIn(body.token)]
  assert.notEqual(now.jti, before.jti)
  assert.deepEqual([now.sub, now.cnf, now.plat_substrate], [before.sub, before.cnf, before.plat_substrate])
  assert.equal((await workload.renew(text(body.token))).status, 200)
  assert.equal((await workload.renew(token)).status, 200, 'a lost response is requested again with the last token')
  assert.equal(await fixture.metric('plat_attest_renewal_success_total'), 3)
  assert.equal(await fixture.metric('plat_attest_renewals_active'), 1)
  const state = await fixture.post('/v1/releases/state', { releaseId })
  assert.deepEqual([state.body.state, state.body.jkt], ['active', workload.prover.jkt])
})

test('a nonce that the broker has forgotten is refused, and a renewal with a new one succeeds', async (t) => {
  const fixture = await startFixture(t, parties)
  const { workload, token } = await redeemed(fixture, 'restarted')
  const proof = await workload.prove()
  // The broker knows a used nonce no more than one from before its restart.
  const direct = { namespace: 'team', agent: 'assistant', session: 'direct', tier: 'tier-2' }
  const used = await askBroker(parties, '/v1/token', { ...direct, dpopJkt: workload.prover.jkt, proof })
  assert.equal(used.status, 200, JSON.stringify(used.body))
  const { status, body } = await workload.renew(token, proof)
  assert.deepEqual([status, body.error], [403, 'invalid_nonce'])
  assert.equal((await workload.renew(token)).status, 200)
})

test('a faulty request is refused, and the renewal continues', async (t) => {
  // Shows D3.metric.plat_attest_renewal_failure_total.
  const fixture = await startFixture(t, parties)
  const { workload, token, releaseId } = await redeemed(fixture, 'strict')
  const other = await redeemed(fixture, 'strict-other')
  const refused = async (reason: string, ask: () => Promise<{ status: number; body: object }>) => {
    const before = (await fixture.metric(failures(reason))) ?? 0
    const { body } = await ask()
    assert.equal('error' in body && body.error, reason, JSON.stringify(body))
    assert.equal(await fixture.metric(failures(reason)), before + 1)
  }
  const proof = await workload.prove()
  await refused('invalid_nonce', async () => workload.renew(token, await other.workload.prove()))
  await refused('invalid_token', () => workload.renew('x', proof))
  const unbound = await askBroker(parties, '/v1/token', { namespace: 'team', agent: 'assistant', session: 'strict' })
  await refused('invalid_token', () => workload.renew(text(unbound.body.token), proof))
  await refused('invalid_token', () => workload.renew(other.token, proof))
  const twin = await fixture.workload(await fixture.release('strict-twin'), workload.prover).redeem()
  await refused('invalid_token', () => workload.renew(text(twin.body.token), proof))
  const bare = () => fixture.post('/v1/renew', { releaseId, proof }, {})
  await refused('invalid_token', bare)
  const url = `${fixture.service.url}/v1/renew`
  const forAnother = { authorization: `DPoP ${token}`, dpop: workload.prover.proof(url, other.token) }
  await refused('invalid_key', () => fixture.post('/v1/renew', { releaseId, proof }, forAnother))
  const thief = { authorization: `DPoP ${token}`, dpop: other.workload.prover.proof(url, token) }
  await refused('other_key', () => fixture.post('/v1/renew', { releaseId, proof }, thief))
  const pending = fixture.workload(await fixture.release('strict-pending'))
  await refused('unknown_release', async () => pending.renew(token, await pending.prove()))
  assert.equal(
    (await workload.renew(token, proof)).status,
    200,
    'none of these has used the nonce up or ended anything',
  )
})

test('a verdict against the platform ends the renewal', async (t) => {
  const fixture = await startFixture(t, parties)
  const cases = {
    evidence_refused: { overrides: { by: parties.stranger }, digests: [] },
    measurement_refused: { overrides: { measurement: OTHER }, digests: undefined },
    platform_changed: { overrides: { measurement: OTHER }, digests: [] },
  }
  for (const [reason, { overrides, digests }] of Object.entries(cases)) {
    const session = reason.replace('_', '-')
    const { workload, token, releaseId } = await redeemed(fixture, session, digests === undefined ? {} : { digests })
    const { status, body } = await workload.renew(token, await workload.prove(overrides))
    assert.deepEqual([status, body.error], [403, reason], JSON.stringify(body))
    assert.equal(await fixture.metric(failures(reason)), 1)
    const state = await fixture.post('/v1/releases/state', { releaseId })
    assert.deepEqual([state.body.state, state.body.reason], ['ended', reason])
    assert.equal((await workload.challenge()).body.error, 'unknown_release')
  }
  assert.equal(await fixture.metric('plat_attest_renewals_active'), 0)
})

test('a session that was revoked is not renewed', async (t) => {
  const fixture = await startFixture(t, parties)
  const { workload, token, releaseId } = await redeemed(fixture, 'gone')
  t.after(() => parties.revoke(null))
  parties.revoke({ session: 'team/assistant/gone' })
  const seen = async () => (await askBroker(parties, '/v1/token/verify', { token })).body.valid === false
  await until(seen, 'the broker to see the revocation')
  assert.equal((await workload.renew(token)).body.error, 'session_revoked')
  assert.equal((await fixture.post('/v1/releases/state', { releaseId })).body.reason, 'session_revoked')
})

test('a token that is not renewed in time lapses, and the end of its session is not a failure', async (t) => {
  const fixture = await startFixture(t, parties)
  const endsAt = new Date(fixture.clock.now() + 60_000).toISOString()
  const lapsing = await redeemed(fixture, 'lapsing')
  const over = await redeemed(fixture, 'over', { endsAt })
  const pending = await fixture.release('pending')
  const { exp, iat } = claimsIn(over.token)
  assert.ok(Number(exp) - Number(iat) <= 60, 'a token does not live longer than what is left of its session')
  const stateOf = async (releaseId: string) => {
    const { body } = await fixture.post('/v1/releases/state', { releaseId })
    return [body.state, body.reason]
  }
  await fixture.clock.advance(61_000)
  await until(async () => (await stateOf(over.releaseId))[1] === 'session_over', 'the session to end')
  assert.deepEqual(await stateOf(lapsing.releaseId), ['active', undefined])
  assert.equal(await fixture.metric(failures('lapsed')), null)
  const tick = () => fixture.clock.advance(60_000)
  await until(async () => (await stateOf(lapsing.releaseId))[1] === 'lapsed', 'the token to lapse', tick)
  assert.equal(await fixture.metric(failures('lapsed')), 1)
  await until(async () => (await stateOf(pending))[1] === 'not_redeemed', 'the release to expire', tick)
  assert.equal(await fixture.metric('plat_attest_releases_pending'), 0)
  assert.equal(await fixture.metric('plat_attest_renewals_active'), 0)
  assert.notEqual(await fixture.release('pending'), pending, 'the session may be released anew')
})

/** Revocation endpoints of a gateway's admin API. `statuses` are its responses, the last one repeated. */
async function adminApi(t: TestContext, statuses: number[]) {
  const seen: { url: string; token: string; body: unknown }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
    seen.push({ url: request.url ?? '', token: request.headers.authorization ?? '', body })
    response.writeHead(statuses.length > 1 ? (statuses.shift() ?? 500) : (statuses[0] ?? 500)).end('{}')
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return { seen, url: `http://127.0.0.1:${port}` }
}

test('with -revoke-url the session of a refused renewal is revoked, with as many requests as needed', async (t) => {
  const gateway = await adminApi(t, [500, 201])
  const env = {
    PLAT_ATTESTATION_TOKEN: SERVICE_TOKEN,
    PLAT_BROKER_TOKEN: parties.broker.brokerToken,
    PLAT_ADMIN_TOKEN: 'admin-secret',
  }
  const fixture = await startFixture(t, parties, { revokeUrl: gateway.url, env })
  const { workload, token, releaseId } = await redeemed(fixture, 'revoked-by-us', { digests: [] })
  await workload.renew(token, await workload.prove({ measurement: OTHER }))
  const tick = () => fixture.clock.advance(5_000)
  await until(() => gateway.seen.length === 2, 'the second request to the gateway', tick)
  const [first, second] = gateway.seen
  assert.deepEqual(first, second)
  const { expiresAt } = (await fixture.post('/v1/releases/state', { releaseId })).body
  assert.deepEqual(second, {
    url: '/v1/revocations',
    token: 'Bearer admin-secret',
    body: {
      target: { session: 'team/assistant/revoked-by-us' },
      reason: `attestation ${releaseId}: platform_changed`,
      expiresAt,
    },
  })
  for (let n = 0; n < 3; n++) await tick()
  assert.equal(gateway.seen.length, 2)
})

test('sessions survive a restart of the service', async (t) => {
  const statePath = path.join(tempFolder(), 'releases.jsonl')
  const first = await startFixture(t, parties, { statePath })
  const { token, workload, releaseId } = await redeemed(first, 'kept')
  const pending = await first.release('kept-pending')
  await first.service.close()
  const second = await startFixture(t, parties, { statePath })
  assert.equal(await second.metric('plat_attest_renewals_active'), 1)
  assert.equal(await second.metric('plat_attest_releases_pending'), 1)
  assert.equal((await second.workload(releaseId, workload.prover).renew(token)).status, 200)
  assert.equal(await second.release('kept-pending'), pending)
  assert.equal((await second.workload(pending).redeem()).status, 200)
})

test('a renewal with an invalid token stores no proof, and uses nothing of the share', async (t) => {
  const fixture = await startFixture(t, parties)
  const { workload, token } = await redeemed(fixture, 'proofs')
  const other = await redeemed(fixture, 'proofs-other')
  const used = () => fixture.metric('plat_attest_pool_used{pool="proofs"}')
  const before = await used()
  assert.ok(before !== null && before >= 4, 'each challenge and each redemption used one')
  const proof = { check: 'tee', nonce: 'n'.repeat(32), evidence: {} }
  for (const wrong of ['a.b.c', other.token, `${token.slice(0, -4)}AAAA`]) {
    const { status, body } = await workload.renew(wrong, proof)
    assert.deepEqual([status, body.error], [401, 'invalid_token'])
  }
  assert.equal(await used(), before)
  assert.equal((await workload.renew(token)).status, 200)
  assert.equal(await used(), before + 2)
})

test('an overloaded service releases nothing new, renews existing releases, and answers operators', async (t) => {
  const overload = { active: false, close() {} }
  const fixture = await startFixture(t, parties, { overload })
  const { workload, token, releaseId } = await redeemed(fixture, 'loaded')
  const pending = fixture.workload(await fixture.release('loaded-pending'))
  const proof = await pending.prove()
  assert.equal(await fixture.metric('plat_attest_overloaded'), 0)

  overload.active = true
  const refused = [
    await fixture.post('/v1/releases', terms('loaded-new')),
    await pending.challenge(),
    await pending.redeem(proof),
  ]
  for (const { status, headers, body } of refused) {
    assert.deepEqual([status, headers.get('retry-after'), body.error], [503, '2', 'overloaded'])
  }
  const renewed = await workload.renew(token)
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body))
  assert.equal(await fixture.metric('plat_attest_overloaded'), 1)
  assert.equal((await fixture.post('/v1/releases/state', { releaseId })).status, 200)
  assert.equal((await fixture.post('/v1/releases/end', { releaseId })).status, 200)
  for (const probe of ['/healthz', '/readyz']) {
    assert.equal((await fetch(fixture.service.url + probe)).status, 200, probe)
  }

  overload.active = false
  assert.equal((await pending.redeem(proof)).status, 200)
})
