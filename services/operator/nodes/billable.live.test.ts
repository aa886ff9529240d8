import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { buildInfo, systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KubernetesApi } from '@plat/kubernetes'
import { createRegistry } from '@plat/metrics'
import { silentLog } from '@plat/process'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { until } from '@plat/testkit/until'
import { Outputs } from '../kube/outputs.ts'
import { operatorMetrics } from '../metrics.ts'
import { meterBillableNodes } from './billable.ts'

const KEPT = '/api/v1/namespaces/plat-system/configmaps/plat-billable-nodes'
const EVERY_MS = 60_000
const HOUR_MS = 60 * EVERY_MS

/** An API server with pods, and leaders that count the nodes under them, one after another. */
async function setUp(t: TestContext, watched: readonly string[] = []) {
  const server = new KubernetesApiServer()
  await server.start()
  const clock = new TestClock(Date.UTC(2026, 10, 29, 23, 0))
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  const access = { server: server.url, namespace: null, credentials: async () => ({ headers: {}, trust: {} }) }
  const api = new KubernetesApi({ access, dialer, clock: systemClock })
  const registry = createRegistry(operatorMetrics, { component: 'operator', build: buildInfo('operator') })
  const warned: string[] = []
  const log = { ...silentLog, warn: (fields: object) => void warned.push(JSON.stringify(fields)) }
  const outputs = new Outputs({ api, namespace: 'plat-system', registry, log: silentLog })
  const ends: (() => Promise<void>)[] = []
  const lead = () => {
    const term = new AbortController()
    const options = { api, namespace: 'plat-system', watched, everyMs: EVERY_MS, outputs, registry, clock, log }
    const ended = meterBillableNodes(options, term.signal)
    const end = async () => {
      term.abort()
      await ended
    }
    ends.push(end)
    return end
  }
  t.after(async () => {
    await Promise.all(ends.map((end) => end()))
    dialer.close()
    await server.stop()
  })
  /** `current day month`, as they are shown. */
  const gauges = () => {
    const lines = registry.expose().matchAll(/^plat_billable_nodes\{period="\w+"\} (\d+)$/gm)
    return Array.from(lines, ([, value]) => value).join(' ')
  }
  const shows = (what: string, between?: () => unknown) =>
    until(
      () => gauges() === what,
      () => `${what}, not ${gauges()}`,
      between,
    )
  const minute = () => clock.advance(EVERY_MS)
  const pod = (name: string, nodeName: string, more: Pod = {}) => {
    const { namespace = 'team', phase = 'Running', owner = {} } = more
    server.put(`/api/v1/namespaces/${namespace}/pods/${name}`, {
      metadata: {
        ownerReferences: [{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', controller: true, ...owner }],
      },
      spec: { nodeName },
      status: { phase },
    })
  }
  return { server, clock, warned, lead, gauges, shows, minute, pod }
}

interface Pod {
  readonly namespace?: string
  readonly phase?: string
  readonly owner?: object
}

test('only nodes that run a sandbox are counted, each once', async (t) => {
  // Shows D3.metric.plat_billable_nodes.
  const { lead, shows, pod } = await setUp(t)
  pod('a', 'node-1')
  pod('b', 'node-1', { namespace: 'other' })
  pod('c', 'node-2', { phase: 'Pending' })
  pod('over', 'node-3', { phase: 'Succeeded' })
  pod('failed', 'node-4', { phase: 'Failed' })
  pod('waits', '')
  pod('job', 'node-5', { owner: { apiVersion: 'batch/v1', kind: 'Job' } })
  pod('claims', 'node-6', { owner: { controller: false } })
  lead()
  await shows('2 2 2')
})

test('a day and a month keep the most nodes at once, over leaders too, and begin again with the next', async (t) => {
  const { server, clock, lead, gauges, shows, minute, pod } = await setUp(t)
  for (const name of ['1', '2', '3']) pod(name, `node-${name}`)
  const end = lead()
  await shows('3 3 3')
  for (const name of ['1', '2', '3']) server.remove(`/api/v1/namespaces/team/pods/${name}`)
  await shows('0 3 3', minute)
  await until(() => server.get(KEPT) !== undefined, 'they are kept')
  await end()
  assert.equal(gauges(), '')
  pod('4', 'node-4')
  lead()
  await shows('1 3 3')
  // From 23:00 to the next day, which is the last of the month, and a day on.
  await clock.advance(HOUR_MS)
  await shows('1 1 3', minute)
  await clock.advance(24 * HOUR_MS)
  await shows('1 1 1', minute)
})

test('only the namespaces that the operator watches are looked at', async (t) => {
  const { server, lead, shows, pod } = await setUp(t, ['team', 'other'])
  pod('a', 'node-1')
  pod('b', 'node-2', { namespace: 'other' })
  pod('c', 'node-3', { namespace: 'foreign' })
  lead()
  await shows('2 2 2')
  assert.ok(!server.seen.includes('GET /api/v1/pods'))
})

test('without permission to list pods nothing is reported, which is logged once', async (t) => {
  const { server, warned, lead, gauges, shows, minute, pod } = await setUp(t)
  pod('a', 'node-1')
  server.faults.push({ request: /^GET \/api\/v1\/pods$/, status: 403, reason: 'Forbidden' })
  lead()
  const podLists = () => server.seen.filter((one) => one === 'GET /api/v1/pods').length
  await until(() => podLists() >= 3, 'further requests', minute)
  assert.equal(gauges(), '')
  assert.equal(warned.length, 1)
  server.faults.length = 0
  await shows('1 1 1', minute)
})
