import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { listening } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { type ClusterOptions, PLAT, SANDBOXES, SECRETS, setUpCluster, TEAM } from './testing/cluster.ts'

const CLAIMS = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxclaims'
const POOL = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxwarmpools/plat-t'

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

const setUp = (t: TestContext, options: ClusterOptions = {}) => setUpCluster(t, { identity, ...options })

test('a session gets a Sandbox and a token, and runs once the Sandbox is ready', async (t) => {
  // Shows D3.metric.plat_session_ready_seconds, D3.metric.plat_sessions, D3.metric.plat_session_phase_transitions_total,
  // D3.metric.plat_token_mint_seconds, D2.agentStatus.activeSessions.
  const { server, start, session, says, reaches, statusOf, at, metrics } = await setUp(t)
  await start()
  session()
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  assert.equal(statusOf().phase, 'Preparing')
  const { data } = Object(server.get(`${SECRETS}/plat-session-s`))
  const [, claims = ''] = Buffer.from(data.token, 'base64').toString().split('.')
  const { sub, scope, act, jti, plat_tier: tier } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  assert.equal(sub, 'spiffe://plat.local/ns/team/agent/a/session/s')
  assert.deepEqual([scope, act, tier], ['tools:notes', { sub: 'user:ada@example.com' }, 't'])
  says('s', 'Ready')
  await reaches('Running')
  const { mode, sandboxRef, jti: recorded } = statusOf()
  assert.deepEqual([mode, recorded], ['direct', jti])
  assert.deepEqual(sandboxRef, { name: 's', uid: at(`${SANDBOXES}/s`).metadata.uid })
  const active = () => Object(at(`${TEAM}/agents/a`).status).activeSessions
  await until(() => active() === 1, 'the Agent counts it')
  const text = await metrics()
  for (const series of [
    /^plat_session_ready_seconds_count\{tier="t",mode="direct"\} 1$/m,
    /^plat_sessions\{namespace="team",tier="t",phase="Running"\} 1$/m,
    /^plat_session_phase_transitions_total\{from="New",to="Preparing",reason="Preparing"\} 1$/m,
    /^plat_session_phase_transitions_total\{from="Preparing",to="Running",reason="Running"\} 1$/m,
    /^plat_token_mint_seconds_count [1-9]/m,
  ])
    assert.match(text, series)
})

test('a session ends with its pod: what it had is deleted, and how it ended is counted', async (t) => {
  // Shows D3.metric.plat_session_outcomes_total.
  const { server, start, session, says, reaches, metrics } = await setUp(t)
  await start()
  const outcomes = { good: ['PodSucceeded', 'Succeeded'], bad: ['PodFailed', 'Failed'] } as const
  for (const [name, [reason, phase]] of Object.entries(outcomes)) {
    session({}, name)
    await until(() => server.get(`${SANDBOXES}/${name}`) !== undefined, 'the Sandbox')
    says(name, 'Finished', reason)
    await reaches(phase, name)
    assert.deepEqual(
      [server.get(`${SANDBOXES}/${name}`), server.get(`${SECRETS}/plat-session-${name}`)],
      [undefined, undefined],
    )
  }
  session({}, 'deleted')
  await until(() => server.get(`${SANDBOXES}/deleted`) !== undefined, 'the Sandbox')
  server.remove(`${TEAM}/agentsessions/deleted`)
  await until(async () => /\{tier="t",result="Cancelled"\} 1$/m.test(await metrics()), 'the end is counted')
  const text = await metrics()
  assert.match(text, /^plat_session_outcomes_total\{tier="t",result="Succeeded"\} 1$/m)
  assert.match(text, /^plat_session_outcomes_total\{tier="t",result="Failed"\} 1$/m)
})

test('sessions beyond maxConcurrentSessions wait, the oldest first, until another one has ended', async (t) => {
  // Shows D2.state.session.QuotaExceeded, D2.state.session.staysPending.
  const { server, start, session, change, condition, reaches, statusOf } = await setUp(t, {
    agent: { maxConcurrentSessions: 1 },
  })
  for (const [at, name] of ['first', 'second', 'third'].entries())
    session({}, name, { creationTimestamp: `2026-01-01T00:00:0${at}Z` })
  await start()
  await reaches('Preparing', 'first')
  await until(() => condition('QuotaExceeded', 'third')?.status === 'True', 'the third waits')
  await until(() => condition('QuotaExceeded', 'second')?.status === 'True', 'the second waits')
  assert.deepEqual([statusOf('second').phase, statusOf('third').phase], ['Pending', 'Pending'])
  change({ cancel: true }, {}, 'first')
  await reaches('Preparing', 'second')
  assert.equal(condition('QuotaExceeded', 'second')?.status, 'False')
  assert.equal(statusOf('third').phase, 'Pending')
  // No limit applies to them any more.
  server.put(`${TEAM}/agents/a`, { spec: { image: 'i', tier: 't', maxConcurrentSessions: 0 } })
  await reaches('Preparing', 'third')
})

test('an idle session is suspended without its token, and a newer activity resumes it with another one', async (t) => {
  // Shows D2.state.session.idleSuspended.
  const { server, start, session, says, change, reaches, at, statusOf } = await setUp(t, {
    agent: { idleTimeout: '1s' },
  })
  await start()
  session()
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  says('s', 'Ready')
  await reaches('Running')
  change({}, { 'plat.dev/last-activity': new Date(systemClock.now() - 3_600_000).toISOString() })
  await reaches('Suspended')
  const before = statusOf().jti
  assert.equal(at(`${SANDBOXES}/s`).spec.operatingMode, 'Suspended')
  assert.equal(server.get(`${SECRETS}/plat-session-s`), undefined)
  says('s', 'Suspended')
  change({}, { 'plat.dev/last-activity': new Date(systemClock.now() + 3_600_000).toISOString() })
  await until(() => at(`${SANDBOXES}/s`).spec.operatingMode === 'Running', 'the Sandbox is woken')
  await until(() => server.get(`${SECRETS}/plat-session-s`) !== undefined, 'the token')
  says('s', 'Ready')
  await reaches('Running')
  assert.notEqual(statusOf().jti, before)
})

test('a session ends while the broker is unavailable', async (t) => {
  let open = 0
  let closed = 0
  const silent = createServer((socket) => {
    open++
    socket.on('error', () => {}).on('close', () => closed++)
  })
  const port = await listening(silent)
  t.after(() => silent.close())
  const { start, session, change, reaches } = await setUp(t, { brokerUrl: `http://127.0.0.1:${port}` })
  await start()
  const names = Array.from({ length: 10 }, (_, n) => `s${n}`)
  for (const name of names) session({}, name)
  await until(() => open >= 4, 'every worker waits for the broker')
  change({ cancel: true }, {}, 's9')
  await reaches('Cancelled', 's9')
  assert.equal(closed, 0)
})

test('a revoked session loses its Sandbox and its token; a suspended one goes on when the entry is gone', async (t) => {
  const { server, start, session, says, reaches, at } = await setUp(t)
  await start()
  session()
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  says('s', 'Ready')
  await reaches('Running')
  const revocation = `${TEAM}/agentrevocations/r`
  server.put(revocation, { spec: { target: { agent: 'team/a' }, mode: 'suspend' } })
  await reaches('Suspended')
  server.remove(revocation)
  await until(() => at(`${SANDBOXES}/s`).spec.operatingMode === 'Running', 'the Sandbox is woken')
  says('s', 'Ready')
  await reaches('Running')
  // Another namespace's entry reaches no further than that namespace.
  server.put(`${PLAT}/namespaces/other/agentrevocations/r`, { spec: { target: { user: 'ada@example.com' } } })
  server.put(revocation, { spec: { target: { session: 'team/a/s' } } })
  await reaches('Revoked')
  assert.deepEqual([server.get(`${SANDBOXES}/s`), server.get(`${SECRETS}/plat-session-s`)], [undefined, undefined])
  session({}, 'other')
  await until(() => server.get(`${SANDBOXES}/other`) !== undefined, 'another session begins')
})

test('a session ends when its time is over', async (t) => {
  const { server, start, session, reaches, statusOf } = await setUp(t, { agent: { maxSessionTTL: '1s' } })
  await start()
  session({ ttl: '1h' })
  await reaches('Expired')
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
  const { startedAt = '', expiresAt = '' } = statusOf()
  assert.equal(Date.parse(expiresAt) - Date.parse(startedAt), 1000)
})

test('a session claims a warm pod of its tier, and runs in the Sandbox that it was given', async (t) => {
  // Shows D3.metric.plat_warm_pool_ready.
  const { server, start, session, says, reaches, at, statusOf, metrics } = await setUp(t, {
    tier: { warmPool: { template: 'warm', size: 2 } },
  })
  const podTemplate = { spec: { containers: [{ name: 'agent', image: 'i' }] } }
  server.put('/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxtemplates/warm', {
    spec: { podTemplate },
  })
  await start()
  await until(() => server.get(POOL) !== undefined, 'the pool')
  const pool = at(POOL)
  assert.deepEqual(pool.spec, { replicas: 2, sandboxTemplateRef: { name: 'warm' } })
  server.put(POOL, { metadata: pool.metadata, spec: pool.spec, status: { readyReplicas: 2 } })
  await until(async () => /^plat_warm_pool_ready\{tier="t"\} 2$/m.test(await metrics()), 'the pool is counted')
  session()
  await until(() => server.get(`${CLAIMS}/s`) !== undefined, 'the claim')
  const claim = at(`${CLAIMS}/s`)
  assert.deepEqual(claim.spec, { warmPoolRef: { name: 'plat-t' }, lifecycle: { shutdownPolicy: 'Delete' } })
  // As the claim's controller does: the owner of a Sandbox of the pool changes.
  const owner = { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim', name: 's', controller: true }
  const ownerReferences = [{ ...owner, uid: claim.metadata.uid }]
  server.put(`${SANDBOXES}/warm-1`, { metadata: { ownerReferences }, spec: {} })
  server.put(`${CLAIMS}/s`, { ...claim, status: { sandbox: { name: 'warm-1' } } })
  says('warm-1', 'Ready')
  await reaches('Running')
  assert.deepEqual([statusOf().mode, statusOf().jti], ['claim', undefined])
  assert.deepEqual(statusOf().sandboxRef, { name: 'warm-1', uid: at(`${SANDBOXES}/warm-1`).metadata.uid })
  // The broker gives the token of such a pod.
  assert.equal(server.get(`${SECRETS}/plat-session-s`), undefined)
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
})

test('the condition of a session says what it waits for, and it continues when that exists', async (t) => {
  const { server, start, session, condition, statusOf } = await setUp(t)
  server.remove(`${PLAT}/trusttiers/t`)
  await start()
  session()
  await until(() => condition('Ready')?.reason === 'TierNotFound', 'the reason')
  assert.equal(condition('Ready')?.message, 'there is no TrustTier t')
  server.faults.push({ request: /^POST .*sandboxes$/, status: 403, reason: 'Forbidden' })
  server.put(`${PLAT}/trusttiers/t`, { spec: {} })
  await until(() => condition('Ready')?.reason === 'NotPrepared', 'the failure to be reported')
  assert.match(condition('Ready')?.message ?? '', /Forbidden/)
  assert.equal(statusOf().phase, 'Preparing')
  server.faults.length = 0
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'it is tried again')
})

test('a Sandbox of the same name that another owner created is not changed', async (t) => {
  const { server, start, session, reaches } = await setUp(t)
  server.put(`${SANDBOXES}/s`, { spec: { of: 'others' } })
  server.faults.push({ request: /^POST .*sandboxes$/, status: 409, reason: 'AlreadyExists' })
  await start()
  session()
  await reaches('Preparing')
  const isTold = () => {
    const { status } = Object(server.get(`${TEAM}/agentsessions/s`))
    return JSON.stringify(status).includes('is not of this session')
  }
  await until(isTold, 'the report')
  session({ cancel: true })
  await reaches('Cancelled')
  assert.deepEqual(Object(server.get(`${SANDBOXES}/s`)).spec, { of: 'others' })
})

test('a fork waits for a report of its parent’s taint labels, and has them in its token', async (t) => {
  const { server, start, session, reaches, condition, change } = await setUp(t)
  await start()
  session({}, 'p')
  session({ fork: { parent: 'p', root: 'p', inheritTaints: true } })
  await until(() => condition('Ready')?.reason === 'TaintsUnknown', 'the fork waits')
  const at = new Date(systemClock.now() + 3_600_000).toISOString()
  change({}, { 'plat.dev/taints': JSON.stringify({ at, agent: 'a', labels: ['web'] }) }, 'p')
  // Any change of the fork has it looked at before its own time.
  change({ ttl: '1h' })
  await reaches('Preparing')
  await until(() => server.get(`${SECRETS}/plat-session-s`) !== undefined, 'the token')
  const { data = {} }: { data?: Record<string, string> } = Object(server.get(`${SECRETS}/plat-session-s`))
  const [token = ''] = Object.values(data)
  const [, claims = ''] = Buffer.from(token, 'base64').toString().split('.')
  assert.equal(JSON.parse(Buffer.from(claims, 'base64url').toString()).plat_inherited_taints, 'web')
})
