import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { denialIn } from '@plat/testkit/mcp/denial'
import { type ApiServer, startApiServer } from './api-server.ts'
import { buildBinaries } from './binaries.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
/** Permissions of agents in `shop`: none in `bank`, and none for Secrets. */
const READER_RULES = [
  { apiGroups: [''], resources: ['pods', 'pods/log', 'configmaps', 'events'], verbs: ['get', 'list'] },
  { apiGroups: ['apps'], resources: ['deployments', 'deployments/scale'], verbs: ['get', 'list', 'patch'] },
]

let cluster: ApiServer
let gateway: GatewayProcess

async function must(method: 'POST' | 'PATCH', where: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const answer = await cluster.ask(method, where, body)
  assert.ok(answer.status < 300, `${where}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** The gateway's own account may do nothing but act as the reader. */
async function makeAccounts(): Promise<string> {
  for (const name of ['ops', 'shop', 'bank']) await must('POST', '/api/v1/namespaces', { metadata: { name } })
  for (const name of ['gateway', 'reader'])
    await must('POST', '/api/v1/namespaces/ops/serviceaccounts', { metadata: { name } })
  const impersonation = {
    apiGroups: [''],
    resources: ['serviceaccounts'],
    resourceNames: ['reader'],
    verbs: ['impersonate'],
  }
  await bind('ops', 'gateway', [impersonation])
  await bind('shop', 'reader', READER_RULES)
  const where = '/api/v1/namespaces/ops/serviceaccounts/gateway/token'
  const { status } = await must('POST', where, { spec: {} })
  return String(Object(status).token)
}

async function bind(namespace: string, account: string, rules: readonly object[]): Promise<void> {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account }
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: 'ops' }]
  await must('POST', `${RBAC}/namespaces/${namespace}/roles`, { metadata: { name: account }, rules })
  await must('POST', `${RBAC}/namespaces/${namespace}/rolebindings`, { metadata: { name: account }, roleRef, subjects })
}

before(async () => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  cluster = await startApiServer(binaries)
  const tokenFile = join(cluster.dir, 'gateway.token')
  await writeFile(tokenFile, await makeAccounts())
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'registry.example/web:1' }] } }
  const spec = { replicas: 1, selector: { matchLabels: labels }, template }
  await must('POST', '/apis/apps/v1/namespaces/shop/deployments', { metadata: { name: 'web' }, spec })
  for (const name of ['one', 'two', 'three'])
    await must('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name, labels }, data: { of: name } })
  await must('POST', '/api/v1/namespaces/shop/secrets', {
    metadata: { name: 'key' },
    stringData: { key: 'opensesame' },
  })
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['tools:plat-k8s'],
    config: {
      k8sOps: {
        enabled: true,
        apiServer: cluster.url,
        tokenFile,
        caFile: cluster.caFile,
        serviceAccount: 'ops/reader',
        namespaces: ['shop', 'bank'],
        allowClusterScoped: true,
        writes: { mode: 'apply', approval: 'policy' },
      },
    },
  })
})

after(async () => {
  await gateway?.close()
  await cluster?.stop()
})

/** Result of a tool: its text, or `error: …`. */
async function call(name: string, args: object): Promise<string> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  const response = await fetch(`${gateway.url}/mcp/plat-k8s`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(message),
  })
  const body = Object(await response.json())
  const denial = denialIn(body)
  if (denial !== null) return `${String(denial.data.error)}: ${denial.message}`
  const { result } = body
  const text = result.content.map((part: { text: string }) => part.text).join()
  return result.isError ? `error: ${text}` : text
}

test('on a real cluster lists come in rows and pages, and objects whole', async () => {
  const first = JSON.parse(
    await call('k8s_list', { kind: 'ConfigMap', namespace: 'shop', labelSelector: 'app=web', limit: 2 }),
  )
  assert.deepEqual(first.columns, ['Name', 'Data', 'Age'])
  assert.deepEqual([first.rows.length, first.remaining], [2, undefined])
  const args = { kind: 'ConfigMap', namespace: 'shop', labelSelector: 'app=web', continue: first.continue }
  const second = JSON.parse(await call('k8s_list', args))
  const names = [...first.rows, ...second.rows].map(([name]: readonly string[]) => name)
  assert.deepEqual([names.toSorted(), second.continue], [['one', 'three', 'two'], undefined])
  const one = JSON.parse(await call('k8s_get', { kind: 'ConfigMap', namespace: 'shop', name: 'one' }))
  assert.deepEqual([one.data, one.metadata.managedFields], [{ of: 'one' }, undefined])
  const { columns, rows } = JSON.parse(await call('k8s_list', { kind: 'Deployment', namespace: 'shop' }))
  assert.deepEqual([columns[0], rows[0][0]], ['Name', 'web'])
})

test('on a real cluster every call acts as the service account alone, whose rights are what counts', async () => {
  const bank = await call('k8s_list', { kind: 'Pod', namespace: 'bank' })
  assert.match(bank, /^error: the cluster does not allow it: .*"system:serviceaccount:ops:reader" cannot list/)
  assert.match(await call('k8s_list', { kind: 'Node' }), /^error: the cluster does not allow it/)
  assert.match(await call('k8s_list', { kind: 'Pod', namespace: 'ops' }), /^policy_denied: k8sOps\.namespaces/)
  assert.equal(
    await call('k8s_get', { kind: 'Secret', namespace: 'shop', name: 'key' }),
    'policy_denied: Secrets cannot be read here',
  )
  assert.match(
    await call('k8s_get', { kind: 'ConfigMap', namespace: 'shop', name: 'none' }),
    /^error: the cluster has no such thing/,
  )
  assert.match(await call('k8s_logs', { namespace: 'shop', pod: 'none' }), /^error: the cluster has no such thing/)
})

test('on a real cluster a workload is scaled and restarted, and what is not allowed is refused by it', async () => {
  const web = { kind: 'Deployment', namespace: 'shop', name: 'web' }
  assert.deepEqual(JSON.parse(await call('k8s_scale', { ...web, replicas: 3 })).now.replicas, 3)
  const { body } = await cluster.ask('GET', '/apis/apps/v1/namespaces/shop/deployments/web')
  assert.equal(Object(body.spec).replicas, 3)
  assert.match(await call('k8s_restart', web), /"done":"restart Deployment shop\/web"/)
  const restarted = await cluster.ask('GET', '/apis/apps/v1/namespaces/shop/deployments/web')
  const { annotations } = Object(restarted.body.spec).template.metadata
  assert.ok('kubectl.kubernetes.io/restartedAt' in annotations)
  assert.match(await call('k8s_delete_pod', { namespace: 'shop', name: 'x' }), /^error: the cluster does not allow it/)
  assert.match(
    await call('k8s_scale', { ...web, namespace: 'bank', replicas: 1 }),
    /^error: the cluster does not allow it/,
  )
})
