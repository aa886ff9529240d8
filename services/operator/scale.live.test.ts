import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { parseFlags } from '@plat/config'
import { systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { until } from '@plat/testkit/until'
import { operatorFlags } from './flags.ts'
import { startOperator } from './start.ts'

const PLAT = '/apis/plat.dev/v1alpha1'
const OUT = '/api/v1/namespaces/plat-system'
const BOXES = '/apis/agents.x-k8s.io/v1beta1'

/** Agents of the larger cluster; the smaller one has a quarter. `npm run long -- -only scale` sets more. */
const AGENTS = Number(process.env.PLAT_TEST_SCALE_AGENTS ?? 4000)
/** CPU time is judged in the long run only, which has the machine to itself. */
const JUDGES_TIME = process.env.PLAT_TEST_SCALE_AGENTS !== undefined
const NAMESPACES = 40
/** An Agent in so many has a server with a credential, and one has a session that runs. */
const SHARE = 8
/** Each change is made so often; the time of the quickest counts. */
const TURNS = 2
/** How long further requests are waited for, in milliseconds: shortly after writes; beyond the 200 ms for which changes gather. */
const SHORT_MS = 100
const LONG_MS = 300
/** Tolerance for a change of constant cost, in milliseconds of CPU, for scheduling and garbage collection. */
const SLACK_MS = 30

const AT = '2026-01-01T00:00:00Z'
const condition = { type: 'Ready', status: 'True', reason: 'InForce', message: '', lastTransitionTime: AT }
const inForce = { conditions: [{ ...condition, observedGeneration: 1 }], observedGeneration: 1 }
const ns = (at: number) => `team-${at % NAMESPACES}`

/** A cluster on which everything is as an earlier leader left it. */
function fill(server: KubernetesApiServer, agents: number): void {
  server.put(`${PLAT}/trusttiers/t`, { spec: {}, status: inForce })
  for (let at = 0; at < NAMESPACES; at++)
    server.put(`${PLAT}/namespaces/${ns(at)}/toolpolicies/p`, {
      spec: { rules: [{ name: 'r', action: 'allow' }] },
      status: inForce,
    })
  for (let at = 0; at < agents; at++) {
    const space = `${PLAT}/namespaces/${ns(at)}`
    const hasMore = at % SHARE === 0
    const tools = hasMore ? [{ name: `s${at}` }] : []
    server.put(`${space}/agents/a${at}`, {
      spec: { image: 'i', tier: 't', policyRef: 'p', tools, budget: { perDayUSD: '5' } },
      status: { ...inForce, activeSessions: hasMore ? 1 : 0 },
    })
    if (!hasMore) continue
    const auth = { type: 'bearerSecret', secretRef: { name: `k${at}`, key: 'token' } }
    server.put(`${space}/mcpservers/s${at}`, {
      spec: { url: 'https://s.example/mcp', auth },
      status: { ...inForce, gatewayKey: `${ns(at)}/s${at}` },
    })
    server.put(`/api/v1/namespaces/${ns(at)}/secrets/k${at}`, { data: { token: 'dA==' } })
    putSession(server, at)
  }
}

const tokenPath = (at: number) => `/api/v1/namespaces/${ns(at)}/secrets/plat-session-x${at}`

/** A session that runs, with its Sandbox and the token that is still valid. */
function putSession(server: KubernetesApiServer, at: number): void {
  const [namespace, name] = [ns(at), `x${at}`]
  const running = { ...condition, reason: 'Running', observedGeneration: 1 }
  const status = {
    phase: 'Running',
    mode: 'direct',
    scopes: [`tools:s${at}`],
    startedAt: AT,
    sandboxRef: { name, uid: `box-${at}` },
    spiffeId: `spiffe://plat.local/ns/${namespace}/agent/a${at}/session/${name}`,
    jti: `jti-${at}`,
    conditions: [running],
    observedGeneration: 1,
  }
  const spec = { agentRef: `a${at}`, user: 'ada' }
  server.put(`${PLAT}/namespaces/${namespace}/agentsessions/${name}`, { metadata: { uid: `u-${at}` }, spec, status })
  const owner = { apiVersion: 'plat.dev/v1alpha1', kind: 'AgentSession', name, uid: `u-${at}`, controller: true }
  const ready = { type: 'Ready', status: 'True', reason: 'Ready' }
  server.put(`${BOXES}/namespaces/${namespace}/sandboxes/${name}`, {
    metadata: { uid: `box-${at}`, ownerReferences: [owner] },
    spec: { operatingMode: 'Running' },
    status: { conditions: [ready] },
  })
  const refreshAt = new Date(systemClock.now() + 600_000).toISOString()
  server.put(tokenPath(at), {
    metadata: {
      ownerReferences: [owner],
      annotations: { 'plat.dev/jti': `jti-${at}`, 'plat.dev/refresh-at': refreshAt },
    },
    data: { token: 'dA==' },
  })
}

/** A cluster of so many Agents with an operator that leads. */
async function setUp(t: TestContext, agents: number) {
  const server = new KubernetesApiServer()
  await server.start()
  fill(server, agents)
  const clock = systemClock
  const dialer = createDialer({ clock, log: silentLog })
  const argv = ['-metrics-bind-address=127.0.0.1:0', '-leader-elect=false', '-identity-url=http://127.0.0.1:9']
  const parsed = parseFlags(operatorFlags, argv)
  if (!parsed.ok) assert.fail(parsed.message)
  const access = { server: server.url, namespace: 'plat-system', credentials: async () => ({ headers: {}, trust: {} }) }
  const broker = { token: 'broker', caPEM: null }
  const parts = { access, dialer, clock, ids: systemIds(clock), log: silentLog, host: 'test', broker }
  const operator = await startOperator({ flags: parsed.values, ...parts })
  t.after(async () => {
    await operator.drain()
    dialer.close()
    await server.stop()
  })
  /** Requests since the last call, without queries, and the CPU that they took, in milliseconds. Waits for `writes`, and for more a while. */
  const settle = async (writes: readonly string[], waitMs: number) => {
    const begun = process.cpuUsage()
    await until(() => writes.every((one) => server.seen.includes(one)), 'the writes')
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    const { user, system } = process.cpuUsage(begun)
    return { requests: server.seen.splice(0), ms: (user + system) / 1000 }
  }
  return { server, settle }
}

type Cluster = Awaited<ReturnType<typeof setUp>>

/** One change of the cluster, and the writes that it is to lead to. Everything that it is about has the index `at`. */
interface Change {
  readonly name: string
  /** Whether its output holds all objects: then its work may grow with them. */
  readonly rendersAll: boolean
  make(server: KubernetesApiServer, turn: number): void
  readonly writes: readonly string[]
}

function changed(server: KubernetesApiServer, path: string, spec: object, metadata: object = {}): void {
  const before = Object(server.get(path))
  server.put(path, { ...before, metadata: { ...before.metadata, ...metadata }, spec: { ...before.spec, ...spec } })
}

const at = SHARE
const space = `${PLAT}/namespaces/${ns(at)}`

const CHANGES: readonly Change[] = [
  {
    name: 'activity of a session',
    rendersAll: false,
    make: (server, turn) => {
      const when = new Date(systemClock.now() + turn * 1000).toISOString()
      changed(server, `${space}/agentsessions/x${at}`, {}, { annotations: { 'plat.dev/last-activity': when } })
    },
    writes: [`PATCH ${space}/agentsessions/x${at}/status`],
  },
  {
    name: 'a label of an Agent',
    rendersAll: false,
    make: (server, turn) => changed(server, `${space}/agents/a${at}`, {}, { labels: { turn: String(turn) } }),
    writes: [],
  },
  {
    name: 'a report of tools',
    rendersAll: false,
    make: (server, turn) => {
      const report = { lastSeen: AT, observedTools: turn, driftedTools: [], unpinnedTools: 0 }
      changed(
        server,
        `${space}/mcpservers/s${at}`,
        {},
        { annotations: { 'plat.dev/pin-report': JSON.stringify(report) } },
      )
    },
    writes: [`PATCH ${space}/mcpservers/s${at}/status`],
  },
  {
    name: 'an AgentRevocation',
    rendersAll: false,
    make: (server, turn) =>
      server.put(`${PLAT}/namespaces/plat-system/agentrevocations/r${turn}`, {
        spec: { target: { session: `${ns(at)}/a${at}/none` } },
        status: inForce,
      }),
    writes: [`PATCH ${OUT}/configmaps/plat-revocations`],
  },
  {
    name: 'an Agent',
    rendersAll: true,
    make: (server, turn) => changed(server, `${space}/agents/a${at}`, { budget: { perDayUSD: String(10 + turn) } }),
    writes: [`PATCH ${OUT}/configmaps/plat-budgets`, `PATCH ${space}/agents/a${at}/status`],
  },
  {
    name: 'an MCPServer',
    rendersAll: true,
    make: (server, turn) => changed(server, `${space}/mcpservers/s${at}`, { url: `https://s${turn}.example/mcp` }),
    writes: [`PATCH ${OUT}/configmaps/plat-upstreams`, `PATCH ${space}/mcpservers/s${at}/status`],
  },
  {
    name: 'a ToolPolicy',
    rendersAll: true,
    make: (server, turn) =>
      changed(server, `${space}/toolpolicies/p`, { rules: [{ name: `r${turn}`, action: 'deny' }] }),
    writes: [`PATCH ${OUT}/configmaps/plat-policies`, `PATCH ${space}/toolpolicies/p/status`],
  },
]

/** CPU time of each change by name: the fastest of its runs, in milliseconds. */
async function measure(cluster: Cluster): Promise<ReadonlyMap<string, number>> {
  const figures = new Map<string, number>()
  for (let turn = 1; turn <= TURNS; turn++) {
    for (const { name, make, writes } of CHANGES) {
      make(cluster.server, turn)
      const { requests, ms } = await cluster.settle(writes, writes.length === 0 ? LONG_MS : SHORT_MS)
      const isRead = (one: string) => one.startsWith('GET') && writes.includes(`${one.replace('GET', 'PATCH')}/status`)
      assert.deepEqual(requests.filter((one) => !isRead(one)).toSorted(), writes.toSorted(), name)
      figures.set(name, Math.min(figures.get(name) ?? Number.POSITIVE_INFINITY, ms))
    }
  }
  return figures
}

test('a new leader writes only what is not as it should be, and a change costs what its output needs', async (t) => {
  const [small, large] = [AGENTS / 4, AGENTS]
  const figures = new Map<number, ReadonlyMap<string, number>>()
  for (const agents of [small, large]) {
    const cluster = await setUp(t, agents)
    const tokens = Array.from({ length: agents / SHARE }, (_, n) => tokenPath(n * SHARE)).map((path) => `GET ${path}`)
    const { requests, ms } = await cluster.settle([`PATCH ${OUT}/configmaps/plat-memory`, ...tokens], LONG_MS)
    const writes = requests.filter((one) => !one.startsWith('GET'))
    const isOutput = (one: string) => one.startsWith(`PATCH ${OUT}/`)
    assert.deepEqual(
      writes.filter((one) => !isOutput(one)),
      [],
    )
    assert.equal(writes.length, 10)
    t.diagnostic(`${agents} agents: start ${Math.round(ms)} ms of CPU, ${requests.length} requests`)
    figures.set(agents, await measure(cluster))
  }
  for (const { name, rendersAll } of CHANGES) {
    const [less = 0, more = 0] = [small, large].map((agents) => figures.get(agents)?.get(name))
    t.diagnostic(`${name}: ${less.toFixed(1)} ms of CPU with ${small} agents, ${more.toFixed(1)} ms with ${large}`)
    assert.ok(
      !JUDGES_TIME || more <= less * (rendersAll ? 6 : 2) + SLACK_MS,
      `${name} took ${less} ms, and ${more} ms with four times as many`,
    )
  }
})
