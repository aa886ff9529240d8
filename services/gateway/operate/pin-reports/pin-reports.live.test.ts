import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rfc3339, systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KubernetesApi } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { started } from '../../testing/started.ts'
import { PinReports, type ReportedPins } from './pin-reports.ts'

const EVERY_MS = 30_000
const pathOf = (server: string) => `/apis/plat.dev/v1alpha1/namespaces/team/mcpservers/${server}`

/** The feature of one replica before a small API server with the MCPServers `a` and `b`, by a clock that the test moves. */
async function setUp(t: TestContext, replica = 'plat-gateway-0') {
  const server = new KubernetesApiServer()
  await server.start()
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  const access = { server: server.url, namespace: null, credentials: async () => ({ headers: {}, trust: {} }) }
  const clock = new TestClock()
  const logged: string[] = []
  const log = {
    ...silentLog,
    info: (_: object, message: string) => void logged.push(message),
    warn: (fields: object) => void logged.push(JSON.stringify(fields)),
  }
  const pins = new Map<string, ReportedPins>()
  const reports = new PinReports({
    api: new KubernetesApi({ access, dialer, clock: systemClock }),
    ...{ everyMs: EVERY_MS, replica, clock, log },
    servers: () => pins.keys(),
    report: (id) => pins.get(id) ?? null,
  })
  for (const name of ['a', 'b']) server.put(pathOf(name), { spec: { url: 'https://a.example' } })
  t.after(async () => {
    await reports.close()
    dialer.close()
    await server.stop()
  })
  return {
    ...{ server, clock, logged },
    sees(name: string, more: Partial<ReportedPins> = {}) {
      const id = `team/${name}`
      const nothing = { observedTools: 2, driftedTools: [], unpinnedTools: 0 }
      pins.set(id, { id, lastSeen: rfc3339(clock.now()), ...nothing, ...more })
    },
    async round() {
      await clock.advance(EVERY_MS)
      await reports.write()
    },
    annotations: (name: string): Record<string, string> =>
      Object(Object(server.get(pathOf(name))?.metadata).annotations ?? {}),
    writes: () => server.seen.filter((request) => request.startsWith('PATCH')).length,
  }
}

test('the tools of a server are reported once listed, when they change, and every ten minutes while they are listed', async (t) => {
  const { sees, round, annotations, writes, clock } = await setUp(t)
  sees('a')
  sees('b', { lastSeen: null })
  await round()
  const reported = () => JSON.parse(annotations('a')['plat.dev/pin-report.plat-gateway-0'] ?? '{}')
  const { lastSeen, ...content } = reported()
  assert.deepEqual(content, { observedTools: 2, driftedTools: [], unpinnedTools: 0 })
  assert.ok(!Number.isNaN(Date.parse(lastSeen)))
  assert.deepEqual(annotations('b'), {})
  sees('a')
  await round()
  assert.equal(writes(), 1)
  sees('a', { driftedTools: ['read'] })
  await round()
  assert.deepEqual(reported().driftedTools, ['read'])
  await clock.advance(600_000)
  sees('a', { driftedTools: ['read'] })
  await round()
  assert.equal(writes(), 3)
  await round()
  assert.equal(writes(), 3)
})

test('a server without an MCPServer is looked up again only after ten intervals', async (t) => {
  const { sees, round, server } = await setUp(t)
  const lookups = () => server.seen.filter((request) => request.endsWith('/stranger')).length
  sees('stranger')
  for (let n = 0; n < 10; n++) await round()
  assert.equal(lookups(), 1)
  await round()
  assert.equal(lookups(), 2)
})

test('a report that cannot be written is written later and logged once, and one that is refused does not block others', async (t) => {
  const { sees, round, server, logged, annotations } = await setUp(t)
  server.faults.push({ request: /mcpservers\/a$/, status: 403, reason: 'Forbidden' })
  sees('a')
  sees('b')
  await round()
  await round()
  assert.equal(logged.length, 1)
  assert.match(logged[0] ?? '', /Forbidden/)
  assert.equal(Object.keys(annotations('b')).length, 1)
  server.faults.length = 0
  await round()
  assert.equal(Object.keys(annotations('a')).length, 1)
  assert.match(logged[1] ?? '', /reported again/)
})

test('names of tools and of replicas that are long are cut, so that every report is valid', async (t) => {
  const { sees, round, annotations } = await setUp(t, `gateway.${'x'.repeat(200)}`)
  sees('a', { driftedTools: Array.from({ length: 64 }, (_, n) => `${n}${'y'.repeat(10_000)}`) })
  await round()
  const [[name = '', text = ''] = []] = Object.entries(annotations('a'))
  assert.match(name, /^plat\.dev\/pin-report\.[0-9a-f]{16}$/)
  const { driftedTools } = JSON.parse(text)
  assert.deepEqual([driftedTools.length, driftedTools[0].length], [16, 512])
})

test('a gateway with pinReports switched on does not start without a cluster', async (t) => {
  const pinReports = { enabled: true }
  await assert.rejects(
    started(t, { pinReports }, true),
    /^Error: pinReports: not in a cluster: KUBERNETES_SERVICE_HOST/,
  )
})
