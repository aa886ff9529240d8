import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { buildBinaries } from './binaries.ts'
import { sandboxDefinitions } from './definitions.ts'
import { type ClusterOperator, grantSandboxes, operatorAccount, startClusterOperator } from './operator.ts'
import { type Cluster, startCluster } from './plat.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PLAT = '/apis/plat.dev/v1alpha1'
const TEAM = `${PLAT}/namespaces/team`
const SANDBOXES = '/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes'
const EXTENSIONS = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team'

let cluster: Cluster
let broker: TestIdentity
let operator: ClusterOperator

async function must(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', where: string, body?: object): Promise<JsonObject> {
  const answer = await cluster.server.ask(method, where, body)
  assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** The object, or null while there is none. */
async function find(where: string): Promise<JsonObject | null> {
  const { status, body } = await cluster.server.ask('GET', where)
  return status === 200 ? body : null
}

before(async () => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  cluster = await startCluster()
  for (const definition of sandboxDefinitions(binaries.crds))
    await must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  for (const where of [SANDBOXES, `${EXTENSIONS}/sandboxclaims`, `${EXTENSIONS}/sandboxwarmpools`])
    await until(async () => (await find(where)) !== null, `${where} is served`)
  await must('POST', '/api/v1/namespaces', { metadata: { name: 'team' } })
  const account = await operatorAccount(cluster.server)
  await grantSandboxes(cluster.server)
  broker = await startTestIdentity()
  process.env.PLAT_BROKER_TOKEN = broker.brokerToken
  const views = ['-browser-image=registry.example/browser:1', '-gateway-labels=app=gateway']
  operator = await startClusterOperator(account, ['-identity-url', broker.url, ...views])
})

after(async () => {
  await operator?.kill()
  await broker?.stop()
  await cluster?.stop()
})

async function put(kind: string, plural: string, name: string, spec: object): Promise<void> {
  const where = kind === 'TrustTier' ? `${PLAT}/${plural}` : `${TEAM}/${plural}`
  await must('POST', where, { apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name }, spec })
}

interface SessionStatus {
  readonly phase?: string
  readonly mode?: string
  readonly jti?: string
  readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
}

async function statusOf(session: string): Promise<SessionStatus> {
  return Object((await must('GET', `${TEAM}/agentsessions/${session}`)).status)
}

function reaches(session: string, phase: string): Promise<void> {
  return until(async () => (await statusOf(session)).phase === phase, `${session} is ${phase}`)
}

/** Status of a Sandbox from agent-sandbox's controller. */
async function says(sandbox: string, type: string, reason: string): Promise<void> {
  const condition = { type, status: 'True', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
  await must('PATCH', `${SANDBOXES}/${sandbox}/status`, { status: { conditions: [condition] } })
}

test('on a real cluster every Sandbox of the golden files is one that the API server takes', async () => {
  const folder = path.join(ROOT, 'services/operator/sessions/pod/fixtures')
  const names = ['plain', 'everything', 'browser', 'code-interpreter', 'code-interpreter-with-sizes', 'attested']
  for (const name of names) {
    const sandbox = JSON.parse(readFileSync(path.join(folder, `${name}.json`), 'utf8'))
    const { spec } = await must('POST', `${SANDBOXES}?dryRun=All&fieldValidation=Strict`, sandbox)
    // Nothing of it was dropped as unknown.
    assert.deepEqual(Object(Object(spec).podTemplate).spec, sandbox.spec.podTemplate.spec, name)
  }
})

test('on a real cluster a session becomes a Sandbox with a token, runs, is suspended and resumed, and ends with its pod', async () => {
  await put('TrustTier', 'trusttiers', 'own', {})
  await put('Agent', 'agents', 'a', { image: 'i', tier: 'own', tools: [{ name: 'notes' }], workspace: { size: '1Gi' } })
  await put('AgentSession', 'agentsessions', 's', { agentRef: 'a', user: 'ada@example.com' })
  await until(async () => (await find(`${SANDBOXES}/s`)) !== null, 'the Sandbox')
  const secret = '/api/v1/namespaces/team/secrets/plat-session-s'
  assert.notEqual(await find(secret), null)
  await says('s', 'Ready', 'DependenciesReady')
  await reaches('s', 'Running')
  const active = async () => Object((await must('GET', `${TEAM}/agents/a`)).status).activeSessions
  await until(async () => (await active()) === 1, 'the Agent counts it')
  await must('PATCH', `${TEAM}/agentsessions/s`, { spec: { suspend: true } })
  await reaches('s', 'Suspended')
  assert.equal(Object((await must('GET', `${SANDBOXES}/s`)).spec).operatingMode, 'Suspended')
  assert.equal(await find(secret), null)
  await must('PATCH', `${TEAM}/agentsessions/s`, { spec: { suspend: false } })
  const mode = async () => Object((await must('GET', `${SANDBOXES}/s`)).spec).operatingMode
  await until(async () => (await mode()) === 'Running', 'the Sandbox is woken')
  await says('s', 'Finished', 'PodSucceeded')
  await reaches('s', 'Succeeded')
  await until(async () => (await find(`${SANDBOXES}/s`)) === null, 'the Sandbox is gone')
  await until(async () => (await active()) === 0, 'the Agent counts it no more')
  const { columns, rows } = await cluster.table(`${TEAM}/agentsessions`)
  assert.deepEqual(columns, ['Name', 'Agent', 'User', 'Phase', 'Mode', 'Sandbox', 'Expires', 'Age'])
  assert.deepEqual(rows[0]?.slice(0, 6), ['s', 'a', 'ada@example.com', 'Succeeded', 'direct', 's'])
})

test('on a real cluster who a session acts for cannot be changed', async () => {
  await put('AgentSession', 'agentsessions', 'fixed', { agentRef: 'nobody', user: 'ada@example.com' })
  const { status } = await cluster.server.ask('PATCH', `${TEAM}/agentsessions/fixed`, { spec: { user: 'root' } })
  assert.equal(status, 422)
  await until(async () => (await statusOf('fixed')).conditions?.[0]?.reason === 'AgentNotFound', 'what it waits for')
})

test('on a real cluster a revocation ends a session that claimed a warm pod, and takes its claim away', async () => {
  const containers = [{ name: 'agent', image: 'i' }]
  const metadata = { name: 'template' }
  const template = { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxTemplate', metadata }
  await must('POST', `${EXTENSIONS}/sandboxtemplates`, { ...template, spec: { podTemplate: { spec: { containers } } } })
  await put('TrustTier', 'trusttiers', 'warm', { warmPool: { template: 'template', size: 1 } })
  await put('Agent', 'agents', 'quick', { image: 'i', tier: 'warm' })
  await until(async () => (await find(`${EXTENSIONS}/sandboxwarmpools/plat-warm`)) !== null, 'the pool')
  await put('AgentSession', 'agentsessions', 'w', { agentRef: 'quick' })
  const claim = `${EXTENSIONS}/sandboxclaims/w`
  await until(async () => (await find(claim)) !== null, 'the claim')
  const { uid } = Object((await must('GET', claim)).metadata)
  const owner = {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    name: 'w',
    uid,
    controller: true,
  }
  await must('POST', SANDBOXES, {
    ...{ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox' },
    metadata: { name: 'adopted', ownerReferences: [owner] },
    spec: { podTemplate: { spec: { containers } } },
  })
  await must('PATCH', `${claim}/status`, { status: { sandbox: { name: 'adopted' } } })
  await says('adopted', 'Ready', 'DependenciesReady')
  await reaches('w', 'Running')
  await put('AgentRevocation', 'agentrevocations', 'r', { target: { session: 'team/quick/w' } })
  await reaches('w', 'Revoked')
  await until(async () => (await find(claim)) === null, 'the claim is gone')
  const rendered = async () => Object((await find('/api/v1/namespaces/plat-system/configmaps/plat-revocations'))?.data)
  await until(
    async () => /team\/quick\/w/.test((await rendered())['revocations.json'] ?? ''),
    'the gateway to get the revocation',
  )
})

test('on a real cluster a NetworkPolicy lets only the gateway reach a pod that shows its browser, is repaired, and ends with the session', async () => {
  await put('TrustTier', 'trusttiers', 'viewed', {})
  await put('Agent', 'agents', 'viewed', {
    ...{ image: 'i', tier: 'viewed' },
    ...{ profile: 'browser', browser: { liveView: true } },
  })
  // A policy of that name that is not the session's: it is left as it is, and there is no pod.
  const where = '/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/plat-view-v'
  const other = { ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }, spec: { podSelector: {} } }
  await must('POST', path.dirname(where), { ...other, metadata: { name: 'plat-view-v' } })
  await put('AgentSession', 'agentsessions', 'v', { agentRef: 'viewed', user: 'ada@example.com' })
  const isTaken = async () => /plat-view-v is there already/.test(JSON.stringify((await statusOf('v')).conditions))
  await until(isTaken, 'the session says that the name is taken')
  assert.equal(await find(`${SANDBOXES}/v`), null)
  await must('DELETE', where)
  await until(async () => (await find(`${SANDBOXES}/v`)) !== null, 'the Sandbox')
  const { spec } = await must('GET', where)
  const { podSelector, policyTypes, ingress } = Object(spec)
  assert.deepEqual([podSelector, policyTypes], [{ matchLabels: { 'plat.dev/session': 'v' } }, ['Ingress']])
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'plat-system' } }
  const from = [{ namespaceSelector, podSelector: { matchLabels: { app: 'gateway' } } }]
  assert.deepEqual(ingress, [{ from, ports: [{ protocol: 'TCP', port: 6080 }] }])
  await must('PATCH', where, { spec: { ingress: [{}] } })
  await until(async () => Object((await must('GET', where)).spec).ingress[0].from !== undefined, 'the repair')
  await must('PATCH', `${TEAM}/agentsessions/v`, { spec: { cancel: true } })
  await reaches('v', 'Cancelled')
  await until(async () => (await find(where)) === null, 'the NetworkPolicy is gone')
})

test('on a real cluster the operator needs no right that the pages do not list', async () => {
  const text = await (await fetch(`${operator.url}/metrics`)).text()
  assert.doesNotMatch(text, /plat_reconcile_errors_total\{[^}]*reason="Forbidden"/)
  assert.match(text, /^plat_session_outcomes_total\{tier="warm",result="Revoked"\} 1$/m)
})
