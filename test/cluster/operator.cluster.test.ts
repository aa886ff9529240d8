import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { until } from '@plat/testkit/until'
import { type ClusterOperator, NAMESPACE, operatorAccount, startClusterOperator } from './operator.ts'
import { type Cluster, startCluster } from './plat.ts'

const API = '/apis/plat.dev/v1alpha1'

let cluster: Cluster
let account: string
let running: ClusterOperator[] = []

before(async () => {
  cluster = await startCluster()
  account = await operatorAccount(cluster.server)
})

after(async () => {
  await cluster?.stop()
})

afterEach(async () => {
  await Promise.all(running.map((operator) => operator.kill()))
  running = []
})

async function operator(flags: readonly string[] = []): Promise<ClusterOperator> {
  const started = await startClusterOperator(account, flags)
  running.push(started)
  return started
}

/** A namespace of a test's own, and what is done in it. */
async function setUp(namespace: string) {
  const { ask } = cluster.server
  const must = async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', where: string, body?: object) => {
    const answer = await ask(method, where, body)
    assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  await must('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  const at = (plural: string, name = '') => `${API}/namespaces/${namespace}/${plural}${name && `/${name}`}`
  return {
    put: (kind: string, plural: string, name: string, spec: object) =>
      must('POST', at(plural), { apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name }, spec }),
    patch: (plural: string, name: string, body: object) => must('PATCH', at(plural, name), body),
    get: (plural: string, name: string) => must('GET', at(plural, name)),
    remove: (plural: string, name: string) => must('DELETE', at(plural, name)),
    secret: (name: string, stringData: object) =>
      must('POST', `/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, stringData }),
  }
}

/** The value of a key of what the operator writes. */
async function output(plural: 'configmaps' | 'secrets', name: string, key: string): Promise<string | undefined> {
  const { body } = await cluster.server.ask('GET', `/api/v1/namespaces/${NAMESPACE}/${plural}/${name}`)
  const value: string | undefined = Object(body.data)[key]
  return value === undefined || plural === 'configmaps' ? value : Buffer.from(value, 'base64').toString()
}

async function rendered(name: string) {
  return JSON.parse((await output('configmaps', `plat-${name}`, `${name}.json`)) ?? '{}')
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

function conditionOf(object: Readonly<Record<string, unknown>>, type: string): Condition | undefined {
  const { conditions = [] }: { conditions?: readonly Condition[] } = Object(object.status)
  return conditions.find((one) => one.type === type)
}

function versionOf(object: Readonly<Record<string, unknown>>): string {
  return String(Object(object.metadata).resourceVersion)
}

async function metrics({ url }: ClusterOperator): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

function leads(operator: ClusterOperator): boolean {
  return operator.lines.some(({ msg }) => msg === 'leads')
}

/** Metrics of a leading operator without failures. */
async function assertMeasured(started: ClusterOperator): Promise<void> {
  assert.equal((await fetch(`${started.url}/readyz`)).status, 200)
  const text = await metrics(started)
  assert.match(text, /^plat_reconcile_duration_seconds_count\{controller="render"\} [1-9]/m)
  assert.match(text, /^plat_rendered_configmap_bytes\{name="plat-policies"\} [1-9]\d+$/m)
  for (const series of [
    /^plat_build_info\{component="operator"/m,
    /^controller_runtime_reconcile_total\{controller="agent",result="success"\} [1-9]/m,
    /^workqueue_adds_total\{name="mcpserver"\} [1-9]/m,
    /^leader_election_master_status\{name="plat-operator"\} 1$/m,
    /^process_resident_memory_bytes [1-9]/m,
    /^process_cpu_seconds_total [\d.]+$/m,
  ])
    assert.match(text, series)
  assert.doesNotMatch(text, /plat_reconcile_errors_total\{|code="403"/)
}

test('resources become ConfigMaps and Secrets of the gateway, and their status says so, with the rights that are documented', async () => {
  // Shows D3.exposition.operatorPort, D3.metric.plat_reconcile_duration_seconds, D3.metric.plat_rendered_configmap_bytes.
  const { put, patch, get, remove, secret } = await setUp('whole')
  await secret('keys', { token: 'opensesame', model: 'of-the-model' })
  const auth = { type: 'bearerSecret', secretRef: { name: 'keys', key: 'token' } }
  await put('MCPServer', 'mcpservers', 'search', { url: 'https://search.example/mcp', auth })
  await put('ToolPolicy', 'toolpolicies', 'p', { rules: [{ name: 'all', action: 'allow' }] })
  const apiKeySecretRef = { name: 'keys', key: 'model' }
  const model = { endpoint: 'https://model.example', name: 'm', apiKeySecretRef }
  await put('Agent', 'agents', 'a', { image: 'i', tier: 't', policyRef: 'p', model })
  const started = await operator()
  await until(async () => conditionOf(await get('agents', 'a'), 'Ready')?.status === 'True', 'the agent is ready')

  assert.equal((await rendered('upstreams')).servers['whole/search'].url, 'https://search.example/mcp')
  assert.deepEqual((await rendered('policies')).policies[0].agents, ['a'])
  const route = (await rendered('models')).models['whole.a']
  assert.equal(route.apiKeyFile, '/var/run/plat/model-keys/whole.a.model')
  assert.equal(await output('secrets', 'plat-upstream-credentials', 'whole.search.token'), 'opensesame')
  assert.equal(await output('secrets', 'plat-model-keys', 'whole.a.model'), 'of-the-model')
  for (const name of ['policies', 'upstreams', 'models', 'agents', 'budgets', 'sovereignty']) {
    assert.doesNotMatch((await output('configmaps', `plat-${name}`, `${name}.json`)) ?? '', /opensesame|of-the-model/)
  }

  await until(
    async () => conditionOf(await get('mcpservers', 'search'), 'Ready') !== undefined,
    'the server has a status',
  )
  const server = await get('mcpservers', 'search')
  const { gatewayKey, observedGeneration } = Object(server.status)
  assert.deepEqual([gatewayKey, observedGeneration], ['whole/search', 1])
  const since = conditionOf(server, 'Ready')?.lastTransitionTime

  await patch('mcpservers', 'search', { spec: { trust: 'trusted' } })
  await until(
    async () => Object((await get('mcpservers', 'search')).status).observedGeneration === 2,
    'the new generation',
  )
  assert.equal((await rendered('upstreams')).servers['whole/search'].trust, 'trusted')
  assert.equal(conditionOf(await get('mcpservers', 'search'), 'Ready')?.lastTransitionTime, since)

  await assertMeasured(started)

  await remove('mcpservers', 'search')
  await until(async () => (await rendered('upstreams')).servers['whole/search'] === undefined, 'the server is gone')
  await until(
    async () => (await output('secrets', 'plat-upstream-credentials', 'whole.search.token')) === undefined,
    'its credential is gone',
  )
  await remove('agents', 'a')
})

test('nodes that run sandboxes are counted with the rights that are documented', async () => {
  const { ask } = cluster.server
  const at = '/api/v1/namespaces/nodes'
  await setUp('nodes')
  await ask('POST', `${at}/serviceaccounts`, { metadata: { name: 'default' } })
  const sandbox = { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 's', uid: 'u', controller: true }
  const pod = (name: string, labels: object) => ({
    metadata: { name, labels, ownerReferences: [sandbox] },
    spec: {
      nodeName: name,
      serviceAccountName: 'default',
      automountServiceAccountToken: false,
      containers: [CONTAINER],
    },
  })
  for (const one of [pod('sandboxed', { 'agents.x-k8s.io/sandbox-name-hash': 'h' }), pod('plain', {})]) {
    const { status, body } = await ask('POST', `${at}/pods`, one)
    assert.equal(status, 201, JSON.stringify(body))
  }
  const started = await operator()
  await until(
    async () => (await metrics(started)).includes('plat_billable_nodes{period="month"} 1\n'),
    'the node is counted',
  )
  assert.doesNotMatch(await metrics(started), /code="403"/)
  await until(async () => (await output('configmaps', 'plat-billable-nodes', 'nodes.json')) !== undefined, 'it is kept')
})

const CONTAINER = { name: 'c', image: 'i' }

test('a refused resource says why in its status, and is ready after the correction', async () => {
  const { put, patch, get, remove } = await setUp('mended')
  await operator()
  await put('Agent', 'agents', 'a', { image: 'i', tier: 't', policyRef: 'later' })
  await until(async () => conditionOf(await get('agents', 'a'), 'Ready')?.status === 'False', 'the agent is refused')
  const refused = conditionOf(await get('agents', 'a'), 'Ready')
  assert.equal(refused?.message, 'policyRef: no ToolPolicy mended/later: the agent is denied')
  await put('ToolPolicy', 'toolpolicies', 'later', {})
  await until(async () => conditionOf(await get('agents', 'a'), 'Ready')?.status === 'True', 'the agent is ready')

  const auth = { type: 'bearerSecret', secretRef: { name: 'none', key: 'k' } }
  await put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp', auth })
  await until(
    async () => conditionOf(await get('mcpservers', 's'), 'Ready')?.status === 'False',
    'the Secret is missing',
  )
  const why = conditionOf(await get('mcpservers', 's'), 'Ready')?.message
  assert.match(why ?? '', /auth\.secretRef: no Secret mended\/none\/k/)
  await patch('mcpservers', 's', { spec: { auth: null } })
  await until(async () => conditionOf(await get('mcpservers', 's'), 'Ready')?.status === 'True', 'the server is ready')
  await remove('agents', 'a')
  await remove('mcpservers', 's')
})

test('a report of the gateway in an annotation becomes the status of the server', async () => {
  const { put, patch, get, remove } = await setUp('pins')
  await operator()
  await put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp' })
  await until(async () => conditionOf(await get('mcpservers', 's'), 'Ready')?.status === 'True', 'the server is ready')
  const report = { lastSeen: '2026-01-01T00:00:00Z', observedTools: 2, driftedTools: ['b', 'a'], unpinnedTools: 0 }
  await patch('mcpservers', 's', { metadata: { annotations: { 'plat.dev/pin-report': JSON.stringify(report) } } })
  await until(
    async () => conditionOf(await get('mcpservers', 's'), 'Pinned')?.status === 'False',
    'the server is unpinned',
  )
  const { observedTools, driftedTools, lastSeen } = Object((await get('mcpservers', 's')).status)
  assert.deepEqual([observedTools, driftedTools, lastSeen], [2, ['a', 'b'], '2026-01-01T00:00:00Z'])
  await remove('mcpservers', 's')
})

test('an operator that is killed and started again writes nothing twice', async () => {
  const { put, get, remove } = await setUp('again')
  await put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp' })
  await put('ToolPolicy', 'toolpolicies', 'p', { rules: [{ name: 'all', action: 'allow' }] })
  await put('Agent', 'agents', 'a', { image: 'i', tier: 't', policyRef: 'p' })
  const first = await operator()
  const settled = async () =>
    conditionOf(await get('mcpservers', 's'), 'Ready') !== undefined &&
    conditionOf(await get('toolpolicies', 'p'), 'Ready') !== undefined &&
    conditionOf(await get('agents', 'a'), 'Ready')?.status === 'True'
  await until(settled, 'all statuses')
  const versions = async () => {
    const { body } = await cluster.server.ask('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps`)
    const { items = [] }: { items?: readonly Readonly<Record<string, unknown>>[] } = body
    // Of those that the operator keeps, the peaks of billable nodes change with the clock.
    const rendered = (name: string) => name.startsWith('plat-') && name !== 'plat-billable-nodes'
    const ours = items.filter(({ metadata }) => rendered(String(Object(metadata).name)))
    return [...ours, await get('mcpservers', 's'), await get('toolpolicies', 'p'), await get('agents', 'a')].map(
      versionOf,
    )
  }
  const before = await versions()
  // Eight rendered files and the three objects.
  assert.equal(before.length, 11)
  await first.kill()
  const second = await operator()
  const reconciled = (text: string) =>
    ['render', 'mcpserver', 'toolpolicy', 'agent'].every((name) =>
      new RegExp(`^controller_runtime_reconcile_total\\{controller="${name}",result="\\w+"\\} [1-9]`, 'm').test(text),
    )
  await until(async () => reconciled(await metrics(second)), 'the second operator has looked at all of them')
  assert.deepEqual(await versions(), before)
  await remove('agents', 'a')
})

test('of two operators one leads, and the other goes on when it ends or is killed', async () => {
  const { put, get, remove } = await setUp('leaders')
  const first = await operator()
  await until(() => leads(first), 'the first leads')
  const second = await operator()
  await until(async () => (await fetch(`${second.url}/readyz`)).status === 200, 'the second is ready')
  assert.match(await metrics(second), /^leader_election_master_status\{name="plat-operator"\} 0$/m)
  await first.stop()
  await until(() => leads(second), 'the second leads')
  const third = await operator()
  await second.kill()
  await until(() => leads(third), 'the third leads')
  await put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp' })
  await until(async () => conditionOf(await get('mcpservers', 's'), 'Ready')?.status === 'True', 'the third works')
  const { body } = await cluster.server.ask(
    'GET',
    `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/plat-operator`,
  )
  assert.ok(Object(body.spec).leaseTransitions >= 2)
  await remove('mcpservers', 's')
})

test('an operator of a few namespaces renders those alone', async () => {
  const here = await setUp('here')
  const there = await setUp('there')
  await here.put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp' })
  await there.put('MCPServer', 'mcpservers', 's', { url: 'https://s.example/mcp' })
  await operator(['-watch-namespaces=here'])
  await until(async () => (await rendered('upstreams')).servers['here/s'] !== undefined, 'the server is rendered')
  assert.deepEqual(Object.keys((await rendered('upstreams')).servers), ['here/s'])
  await until(async () => conditionOf(await here.get('mcpservers', 's'), 'Ready') !== undefined, 'its status')
  assert.equal((await there.get('mcpservers', 's')).status, undefined)
})
