import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339, systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { startIdentity } from '../index.ts'
import { BROKER_TOKEN, claimsIn, jsonFile, startTestBroker, text } from '../testing/broker.ts'
import { addSpec, addStatus, phase, SESSION, setMetadata, setSpec, TIER } from './testing/cluster.ts'
import { setUp, until } from './testing/pods.ts'

test('a pod receives its session: first the names, then a token that verifies, then its environment', async (t) => {
  // Shows D1.service.bootstraps. Shows D1.endpoint.bootstrap. Shows D1.bootstrap.authorization.
  // Shows D1.bootstrap.boundPodFollowed. Shows D1.auth.bootstrapByServiceAccount.
  // Shows D1.bootstrap.response.namespace. Shows D1.bootstrap.response.session. Shows D1.bootstrap.response.agent.
  // Shows D1.bootstrap.response.attested. Shows D1.bootstrap.response.token. Shows D1.bootstrap.response.expiresAt.
  // Shows D1.bootstrap.response.spiffeId. Shows D1.bootstrap.response.jti. Shows D1.bootstrap.response.env.
  // Shows D1.bootstrap.response.env.PLAT_GATEWAY_URL. Shows D1.bootstrap.response.env.PLAT_SESSION.
  const { ask, broker, clock } = await setUp(t, { bootstrapGatewayUrl: 'http://gateway:8080' })
  const { status, headers, body } = await ask()
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(headers.get('cache-control'), 'no-store')
  const { token, jti, ...rest } = body
  assert.deepEqual(rest, {
    namespace: 'team',
    session: 's1',
    agent: 'assistant',
    attested: false,
    expiresAt: rfc3339(clock.now() + 15 * 60_000),
    spiffeId: 'spiffe://plat.local/ns/team/agent/assistant/session/s1',
    env: {
      REGION: 'eu',
      PASSWORD: 'opensesame',
      BUCKET: 'data-eu-$(REGION)-$(UNKNOWN)',
      PLAT_GATEWAY_URL: 'http://gateway:8080',
      PLAT_NAMESPACE: 'team',
      PLAT_AGENT: 'assistant',
      PLAT_SESSION: 's1',
    },
  })
  const verified = await broker.verify(text(token))
  assert.ok(!('error' in verified), JSON.stringify(verified))
  assert.equal(claimsIn(token).jti, jti)
  const { act, scope, plat_tier, plat_groups, plat_principal_verified, plat_substrate } = claimsIn(token)
  assert.deepEqual(act, { sub: 'user:ada@example.com' })
  assert.deepEqual(
    [scope, plat_tier, plat_groups, plat_principal_verified],
    ['tools:github', 'tier-1', 'staff', 'idToken'],
  )
  assert.deepEqual(plat_substrate, {
    check: 'kubernetes',
    attestation: 'token-review',
    platform: 'kubernetes',
    sandbox: 'uid-pod',
    workload: 'system:serviceaccount:team:runner',
  })
})

test('the token is reviewed for the bootstrap audience, which a flag names', async (t) => {
  // Shows D1.bootstrap.tokenReview. Shows D1.flag.bootstrap-audience.
  const { server, ask, refused } = await setUp(t, { bootstrapAudience: 'warm' })
  assert.equal(await refused(), '401 invalid_token')
  server.audiences = ['warm']
  assert.equal((await ask()).status, 200)
  assert.equal(server.seen[0], 'POST /apis/authentication.k8s.io/v1/tokenreviews')
})

test('the first pod is recorded on the session, together with what was issued', async (t) => {
  // Shows D1.state.bootstrapFirstPod.
  const { server, ask } = await setUp(t)
  const { body } = await ask()
  const { podRef, spiffeId, jti } = server.at(SESSION).status ?? {}
  assert.deepEqual(podRef, { name: 'warm-1', uid: 'uid-pod' })
  assert.deepEqual([spiffeId, jti], [body.spiffeId, body.jti])
})

test('a repeated request before the end returns the session with a fresh token', async (t) => {
  // Shows D1.bootstrap.refresh.
  const { ask, clock } = await setUp(t)
  const first = await ask()
  await clock.advance(10 * 60_000)
  const second = await ask()
  assert.equal(second.status, 200)
  assert.equal(second.body.spiffeId, first.body.spiffeId)
  assert.notEqual(second.body.jti, first.body.jti)
  assert.ok(text(second.body.expiresAt) > text(first.body.expiresAt))
})

test('an attested session gets no token', async (t) => {
  // Shows D1.bootstrap.attestedGetsNoToken.
  const { server, ask } = await setUp(t)
  server.change(TIER, setSpec({ attested: true }))
  server.change(SESSION, addStatus({ env: { PLAT_RELEASE_ID: 'r-1' } }))
  const { status, body } = await ask()
  assert.equal(status, 200)
  assert.equal(body.attested, true)
  assert.deepEqual(
    ['token', 'jti', 'expiresAt'].filter((name) => name in body),
    [],
  )
  assert.match(JSON.stringify(body.env), /"PLAT_RELEASE_ID":"r-1"/)
  assert.equal(server.at(SESSION).status?.jti, undefined)
})

test('a token never outlives its session', async (t) => {
  const { server, ask, clock, refused } = await setUp(t)
  const expiresAt = rfc3339(clock.now() + 90_000)
  server.change(SESSION, addStatus({ expiresAt }))
  assert.equal((await ask()).body.expiresAt, expiresAt)
  await clock.advance(90_000)
  assert.equal(await refused(), '410 session_gone')
  server.change(SESSION, (session) => {
    session.status = { ...session.status, expiresAt: undefined, startedAt: rfc3339(clock.now() - 60_000) }
    session.spec = { ...session.spec, ttl: '2m' }
    delete session.status.expiresAt
  })
  assert.equal((await ask()).body.expiresAt, rfc3339(clock.now() + 60_000))
})

test('another pod is refused while the first one lives, even while it is being deleted, and takes over afterwards', async (t) => {
  // Shows D1.state.bootstrapOtherPod. Shows D1.error.bootstrap.409.already_bootstrapped.
  const { server, ask, refused } = await setUp(t)
  const first = '/api/v1/namespaces/team/pods/warm-0'
  server.put(first, 'uid-first', { status: { phase: 'Running' } })
  server.change(SESSION, addStatus({ podRef: { name: 'warm-0', uid: 'uid-first' } }))
  assert.equal(await refused(), '409 already_bootstrapped')
  server.change(first, setMetadata({ deletionTimestamp: '2026-01-01T00:00:00Z' }))
  assert.equal(await refused(), '409 already_bootstrapped')
  server.objects.delete(first)
  server.faults.push({ request: /warm-0/, status: 500 })
  assert.equal(await refused(), '503 temporarily_unavailable')
  server.faults.pop()
  assert.equal((await ask()).status, 200)
  assert.deepEqual(server.at(SESSION).status?.podRef, { name: 'warm-1', uid: 'uid-pod' })
})

test('after a conflicting write the session is checked again: one suspended meanwhile gets no token', async (t) => {
  const { server, refused } = await setUp(t)
  const released = Promise.withResolvers<void>()
  server.held.push({ request: /^PATCH/, until: released.promise })
  const answer = refused()
  await until(() => server.seen.some((line) => line.startsWith('PATCH')))
  server.change(SESSION, addSpec({ suspend: true }))
  released.resolve()
  assert.equal(await answer, '409 session_suspended')
  assert.equal(server.at(SESSION).status?.podRef, undefined)
})

test('revoked sessions, agents and users get no session, and no pod does while the list cannot be read', async (t) => {
  for (const [mode, target, refusal] of [
    ['revoke', { session: 'team/assistant/s1' }, '403 session_revoked'],
    ['suspend', { user: 'ada@example.com' }, '409 session_suspended'],
    ['revoke', { agent: 'team/another' }, null],
  ] as const) {
    const revocationsFile = await jsonFile({ version: 1, revocations: [{ id: 'r', mode, target }] })
    const { ask } = await setUp(t, { revocationsFile })
    const { status, body } = await ask()
    assert.equal(status === 200 ? null : `${status} ${body.error}`, refusal)
  }
  const { refused } = await setUp(t, { revocationsFile: '/nonexistent/revocations.json' })
  assert.equal(await refused(), '503 temporarily_unavailable')
})

test('bootstrap is served on its own address only, with liveness as the only other endpoint', async (t) => {
  // Shows D1.flag.bootstrap-listen. Shows D1.service.healthzOnBothPorts. Shows D1.versioning.pathPrefix.
  const { url, broker } = await setUp(t)
  const statusOf = async (base: string | null, where: string, method = 'GET') =>
    (await fetch(`${base}${where}`, { method })).status
  assert.equal(await statusOf(broker.identity.url, '/v1/bootstrap', 'POST'), 404)
  for (const base of [url, broker.identity.url]) {
    const response = await fetch(`${base}/healthz`)
    assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }])
  }
  for (const where of ['/readyz', '/version', '/metrics', '/.well-known/jwks.json']) {
    assert.equal(await statusOf(url, where), 404, where)
    assert.notEqual(await statusOf(broker.identity.url, where), 404, where)
  }
  for (const where of ['/v1/token', '/v1/token/verify', '/v1/exchange', '/bootstrap']) {
    assert.equal(await statusOf(url, where, 'POST'), 404, where)
  }
  assert.equal(await statusOf(url, '/v1/bootstrap'), 405)
})

test('without an address there is no bootstrap, and an address without a cluster does not start', async (t) => {
  // Shows D1.service.bootstrapOffByDefault.
  const { identity } = await startTestBroker(t)
  assert.equal(identity.bootstrapUrl, null)
  const parts = {
    env: { PLAT_BROKER_TOKEN: BROKER_TOKEN },
    clock: systemClock,
    ids: systemIds(systemClock),
    log: silentLog,
  }
  const started = startIdentity({ ...parts, listen: '127.0.0.1:0', bootstrapListen: '127.0.0.1:0' })
  await assert.rejects(started, /-bootstrap-listen: needs a cluster/)
})

test('every issued session, and every refusal, is logged without the token', async (t) => {
  const { ask, broker, server } = await setUp(t)
  const { body } = await ask()
  server.change(SESSION, phase('Revoked'))
  await ask()
  const lines = broker.lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'bootstrap')
  assert.deepEqual(
    lines.map(({ outcome, jti, code, podUid }) => [outcome, jti, code, podUid]),
    [
      ['issued', body.jti, undefined, undefined],
      ['refused', undefined, 'session_revoked', 'uid-pod'],
    ],
  )
  assert.ok(!broker.lines.join('').includes(text(body.token)))
})

test('a session without scopes gets those that the operator resolved', async (t) => {
  const { server, ask } = await setUp(t)
  server.change(SESSION, setSpec({ agentRef: 'assistant' }))
  server.change(SESSION, addStatus({ scopes: ['tools:notes'] }))
  assert.equal(claimsIn((await ask()).body.token).scope, 'tools:notes')
  server.change(SESSION, addSpec({ scopes: [] }))
  assert.ok(!('scope' in claimsIn((await ask()).body.token)))
})
