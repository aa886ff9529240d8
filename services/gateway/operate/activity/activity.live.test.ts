import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KubernetesApi } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { Identity } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { started } from '../../testing/started.ts'
import { Activity, type ActivityParts } from './activity.ts'

const EVERY_MS = 60_000
const pathOf = (session: string) => `/apis/plat.dev/v1alpha1/namespaces/default/agentsessions/${session}`
const writes = ({ seen }: KubernetesApiServer) => seen.filter((request) => request.startsWith('PATCH')).length

function activityOf(server: KubernetesApiServer, session: string): unknown {
  return Object(Object(server.get(pathOf(session))?.metadata).annotations)['plat.dev/last-activity']
}

type Caller = Parameters<ActivityParts['taints']>[0]

/** The feature before a small API server that has the sessions `s1` and `s2`, by a clock that the test moves. */
async function setUp(t: TestContext) {
  const server = new KubernetesApiServer()
  await server.start()
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  const access = { server: server.url, namespace: null, credentials: async () => ({ headers: {}, trust: {} }) }
  const api = new KubernetesApi({ access, dialer, clock: systemClock })
  const clock = new TestClock()
  const logged: string[] = []
  const log = {
    ...silentLog,
    info: (_: object, message: string) => void logged.push(message),
    warn: (fields: object) => void logged.push(JSON.stringify(fields)),
  }
  const busy: Identity[] = []
  const live = { busy: (visit: (who: Identity) => void) => busy.forEach(visit) }
  const labels = new Map<string, readonly string[]>()
  const taints = ({ namespace, agent, session }: Caller) => labels.get(`${namespace}/${agent}/${session}`) ?? []
  const activity = new Activity({ api, everyMs: EVERY_MS, live, taints, clock, log })
  for (const session of ['s1', 's2']) server.put(pathOf(session), { spec: { agentRef: 'assistant' } })
  t.after(async () => {
    await activity.close()
    await dialer.close()
    await server.stop()
  })
  const see = (session: string) => activity.see({ namespace: 'default', agent: 'assistant', session }, clock.now())
  /** Runs one interval and waits for its writes. */
  const round = async () => {
    await clock.advance(EVERY_MS)
    await activity.write()
  }
  return { server, activity, labels, clock, logged, busy, see, round }
}

test('each interval writes the activity of every session that has called once, and of no other', async (t) => {
  // Shows D3.sessions.activity.intervalSeconds.
  const { server, clock, see, round } = await setUp(t)
  see('s1')
  await clock.advance(1000)
  const last = new Date(clock.now()).toISOString().replace('.000', '')
  see('s1')
  see('s1')
  await round()
  assert.equal(activityOf(server, 's1'), last)
  assert.equal(activityOf(server, 's2'), undefined)
  assert.deepEqual(server.get(pathOf('s1'))?.spec, { agentRef: 'assistant' })
  await round()
  see('s2')
  await round()
  assert.ok(activityOf(server, 's2') !== undefined)
  assert.equal(writes(server), 2)
})

test('a session with a call in flight counts as active until the call ends', async (t) => {
  const { server, busy, round } = await setUp(t)
  busy.push({ ...testIdentity, namespace: 'default', session: 's1' })
  await round()
  const before = activityOf(server, 's1')
  assert.ok(before !== undefined)
  await round()
  assert.notEqual(activityOf(server, 's1'), before)
})

test('a session without an AgentSession is looked up again only after ten intervals', async (t) => {
  const { server, see, round } = await setUp(t)
  const lookups = () => server.seen.filter((request) => request.endsWith('/stranger')).length
  see('stranger')
  await round()
  for (let n = 0; n < 9; n++) {
    see('stranger')
    see('s1')
    await round()
  }
  assert.equal(lookups(), 1)
  see('stranger')
  see('s1')
  await round()
  assert.equal(lookups(), 2)
})

test('an annotation that cannot be written is written later, and logged once', async (t) => {
  const { server, logged, see, round } = await setUp(t)
  server.faults.push({ request: /./, status: 503, reason: 'ServiceUnavailable' })
  see('s1')
  see('s2')
  await round()
  await round()
  assert.equal(logged.length, 1)
  assert.match(logged[0] ?? '', /ServiceUnavailable.*"sessions":2/)
  server.faults.length = 0
  await round()
  assert.ok(activityOf(server, 's1') !== undefined && activityOf(server, 's2') !== undefined)
  assert.equal(logged.length, 2)
  assert.match(logged[1] ?? '', /written again/)
})

test('a session that the API server refuses does not block the others', async (t) => {
  const { server, logged, see, round } = await setUp(t)
  server.faults.push({ request: /agentsessions\/s1$/, status: 403, reason: 'Forbidden' })
  const others = Array.from({ length: 20 }, (_, n) => `other-${n}`)
  for (const session of others) server.put(pathOf(session), { spec: { agentRef: 'assistant' } })
  for (const session of ['s1', ...others]) see(session)
  await round()
  for (const session of others) assert.ok(activityOf(server, session) !== undefined, session)
  assert.equal(logged.length, 1)
})

test('a gateway reports the sessions that call to the configured API server', async (t) => {
  // Shows D3.sessions.activity.enabled, D3.sessions.activity.apiServer, D3.sessions.activity.tokenFile, D3.sessions.activity.caFile.
  const authority = await createAuthority({ name: 'cluster', now: systemClock.now() })
  const { pem: cert, privateKey } = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const server = new KubernetesApiServer({ cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) })
  await server.start()
  t.after(() => server.stop())
  server.put(pathOf('s1'), { spec: { agentRef: 'assistant' } })
  const dir = tempFolder()
  const [tokenFile, caFile] = [join(dir, 'token'), join(dir, 'ca.pem')]
  await writeFile(tokenFile, 'token-of-the-gateway')
  await writeFile(caFile, authority.pem)
  const activity = { enabled: true, intervalSeconds: 1, apiServer: server.url, tokenFile, caFile }
  const { gateway, issuer } = await started(t, { activity })
  const response = await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${issuer.token({ scope: 'tools:other' })}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
  })
  assert.equal(response.status, 403)
  await until(() => activityOf(server, 's1') !== undefined, 'the annotation')
  assert.deepEqual([...server.bearers], ['Bearer token-of-the-gateway'])
})

test('a gateway with activity switched on does not start without a cluster', async (t) => {
  const activity = { enabled: true }
  await assert.rejects(started(t, { activity }, true), /^Error: activity: not in a cluster: KUBERNETES_SERVICE_HOST/)
})

test('the taint labels of a session are reported with its activity, by namespace, agent and session', async (t) => {
  const { server, labels, clock, see, round } = await setUp(t)
  const reportOf = (session: string) =>
    JSON.parse(String(Object(Object(server.get(pathOf(session))?.metadata).annotations)['plat.dev/taints']))
  labels.set('default/assistant/s1', ['web'])
  labels.set('default/other/s2', ['mail'])
  see('s1')
  see('s2')
  const before = clock.now()
  await round()
  const { at, ...report } = reportOf('s1')
  assert.deepEqual(report, { agent: 'assistant', labels: ['web'] })
  assert.ok(Date.parse(at) >= before + EVERY_MS)
  assert.deepEqual(reportOf('s2').labels, [])
})
