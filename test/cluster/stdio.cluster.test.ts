import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import { until } from '@plat/testkit/until'
import {
  type ClusterOperator,
  grantStdioServers,
  NAMESPACE,
  operatorAccount,
  startClusterOperator,
} from './operator.ts'
import { type Cluster, startCluster } from './plat.ts'

const FLAGS = ['-stdio-image=registry.example/plat:1', '-gateway-labels=app=gateway']
const SERVERS = '/apis/plat.dev/v1alpha1/namespaces/team/mcpservers'
const PATHS = [
  '/api/v1/namespaces/team/serviceaccounts/plat-stdio-files',
  '/api/v1/namespaces/team/secrets/plat-stdio-files',
  '/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/plat-stdio-files',
  '/api/v1/namespaces/team/services/plat-stdio-files',
  '/apis/apps/v1/namespaces/team/deployments/plat-stdio-files',
] as const
const [ACCOUNT, SECRET, NETWORK, SERVICE, DEPLOYMENT] = PATHS
const OWN_SECRET = '/api/v1/namespaces/team/secrets/files'

const STDIO = {
  image: 'registry.example/files:1',
  command: 'server-files',
  env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'files', key: 'token' } } }],
  isolation: { network: false, writable: ['/data'] },
}

let cluster: Cluster
let account: string
let running: ClusterOperator[] = []

before(async () => {
  cluster = await startCluster()
  account = await operatorAccount(cluster.server)
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await must('POST', '/api/v1/namespaces', { metadata: { name: 'team', labels: restricted } })
})

after(async () => {
  await cluster?.stop()
})

afterEach(async () => {
  await Promise.all(running.map((operator) => operator.kill()))
  running = []
})

async function operator(flags: readonly string[] = FLAGS): Promise<ClusterOperator> {
  const started = await startClusterOperator(account, flags)
  running.push(started)
  return started
}

async function must(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', where: string, body?: object) {
  const answer = await cluster.server.ask(method, where, body)
  assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function exists(path: string): Promise<boolean> {
  return (await cluster.server.ask('GET', path)).status === 200
}

async function allExist(): Promise<boolean> {
  for (const path of PATHS) if (!(await exists(path))) return false
  return true
}

async function condition(type: string): Promise<{ status: string; reason: string; message: string } | undefined> {
  const { conditions = [] } = Object((await must('GET', `${SERVERS}/files`)).status)
  return conditions.find((one: { type: string }) => one.type === type)
}

const server = (stdio: object) => ({
  apiVersion: 'plat.dev/v1alpha1',
  kind: 'MCPServer',
  metadata: { name: 'files' },
  spec: { stdio },
})

async function digest(): Promise<string> {
  const { template } = Object((await must('GET', DEPLOYMENT)).spec)
  return template.metadata.annotations['plat.dev/stdio-digest']
}

test('without the rights for stdio servers the status says so, and everything else is rendered', async () => {
  await must('POST', OWN_SECRET.replace('/files', ''), { metadata: { name: 'files' }, stringData: { token: 'one' } })
  await must('POST', SERVERS, server(STDIO))
  await operator()
  await until(async () => (await condition('Running'))?.reason === 'NotApplied', 'the status')
  assert.match((await condition('Running'))?.message ?? '', /forbidden/)
  assert.equal((await condition('Ready'))?.status, 'True')
  for (const path of PATHS) assert.equal(await exists(path), false, path)
  await grantStdioServers(cluster.server)
})

test('a real API server accepts every object, and the pod complies with the standard restricted', async () => {
  // Shows D2.server.stdio.cluster.
  const started = await operator()
  await until(allExist, 'every object')
  const { spec, metadata } = Object((await must('GET', DEPLOYMENT)).spec).template
  const pod = { metadata: { ...metadata, name: 'tried' }, spec }
  await must('POST', '/api/v1/namespaces/team/pods?dryRun=All', pod)
  const weaker = { ...spec, shareProcessNamespace: true, hostNetwork: true }
  const refused = await cluster.server.ask('POST', '/api/v1/namespaces/team/pods?dryRun=All', { ...pod, spec: weaker })
  assert.equal(refused.status, 403, 'the standard is enforced')
  const { ingress, egress, policyTypes } = Object((await must('GET', NETWORK)).spec)
  assert.deepEqual([policyTypes, egress, ingress.length], [['Ingress', 'Egress'], undefined, 1])
  const upstreams = Object((await must('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/plat-upstreams`)).data)
  const entry = JSON.parse(upstreams['upstreams.json']).servers['team/files']
  assert.equal(new X509Certificate(entry.caPEM).checkHost(new URL(entry.url).hostname), new URL(entry.url).hostname)
  const metrics = await (await fetch(`${started.url}/metrics`)).text()
  assert.match(metrics, /^controller_runtime_reconcile_total\{controller="stdioserver",result="requeue_after"\} [1-9]/m)
})

test('changes by others are repaired, status follows the Deployment, and another leader changes nothing', async () => {
  const first = await operator()
  await until(allExist, 'every object')
  await must('PATCH', DEPLOYMENT, { spec: { replicas: 5 } })
  await until(async () => Object((await must('GET', DEPLOYMENT)).spec).replicas === 1, 'one replica again')
  for (const path of [NETWORK, SERVICE, DEPLOYMENT]) {
    await must('DELETE', path)
    await until(() => exists(path), `${path} again`)
  }
  await must('PATCH', NETWORK, { spec: { ingress: [{}] } })
  await until(async () => Object((await must('GET', NETWORK)).spec).ingress[0].from !== undefined, 'the rule again')
  const now = new Date().toISOString()
  const available = {
    type: 'Available',
    status: 'True',
    reason: 'x',
    message: '',
    lastTransitionTime: now,
    lastUpdateTime: now,
  }
  await must('PATCH', `${DEPLOYMENT}/status`, { status: { conditions: [available] } })
  await until(async () => (await condition('Running'))?.status === 'True', 'it runs')
  const versions = async () => {
    const objects = await Promise.all(PATHS.map((path) => must('GET', path)))
    return objects.map(({ metadata }) => Object(metadata).resourceVersion)
  }
  const before = await versions()
  await first.stop()
  const next = await operator()
  await until(() => next.lines.some(({ msg }) => msg === 'leads'), 'another leader')
  await until(
    async () =>
      /controller="stdioserver",result="requeue_after"\} [1-9]/.test(await (await fetch(`${next.url}/metrics`)).text()),
    'it has applied',
  )
  assert.deepEqual(await versions(), before)
})

test('a changed Secret starts a new pod', async () => {
  await operator()
  await until(allExist, 'every object')
  const before = await digest()
  await must('PATCH', OWN_SECRET, { data: { token: Buffer.from('two').toString('base64') } })
  await until(async () => (await digest()) !== before, 'another template')
  const secret = JSON.stringify(await must('GET', SECRET))
  assert.ok(!secret.includes(Buffer.from('two').toString('base64')))
})

test('a deleted server leaves nothing behind, and an object of another owner stays', async () => {
  await operator()
  await until(allExist, 'every object')
  await must('DELETE', `${SERVERS}/files`)
  for (const path of PATHS) await until(async () => !(await exists(path)), `${path} is deleted`)
  await must('POST', SERVICE.replace('/plat-stdio-files', ''), {
    metadata: { name: 'plat-stdio-files' },
    spec: { selector: { own: 'yes' }, ports: [{ port: 1 }] },
  })
  await must('POST', SERVERS, server(STDIO))
  await until(async () => (await condition('Running'))?.reason === 'NotApplied', 'the conflict')
  assert.match(
    (await condition('Running'))?.message ?? '',
    /^Service team\/plat-stdio-files exists and does not belong/,
  )
  assert.deepEqual(Object((await must('GET', SERVICE)).spec).selector, { own: 'yes' })
  await must('DELETE', `${SERVERS}/files`)
  await until(async () => !(await exists(ACCOUNT)), 'what was applied is deleted')
  assert.ok(await exists(SERVICE))
})

test('the API server refuses values that no pod can have', async () => {
  const stdio = (more: object) => ({ ...server({ command: 'x', ...more }), metadata: { name: 'wrong' } })
  for (const wrong of [
    { image: '' },
    { imagePullSecrets: [''] },
    { resources: { limits: { memory: 'much' } } },
    { command: '' },
  ]) {
    const { status } = await cluster.server.ask('POST', SERVERS, stdio(wrong))
    assert.equal(status, 422, JSON.stringify(wrong))
  }
})
