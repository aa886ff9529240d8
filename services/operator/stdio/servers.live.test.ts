import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { until } from '@plat/testkit/until'
import { API, OUT, setUpOperators } from '../testing/operators.ts'

const FLAGS = ['-leader-elect=false', '-stdio-image=registry.example/plat:1', '-gateway-labels=app=gateway,tier=data']
const SERVERS = `${API}/namespaces/team/mcpservers`
const PATHS = {
  account: '/api/v1/namespaces/team/serviceaccounts/plat-stdio-files',
  secret: '/api/v1/namespaces/team/secrets/plat-stdio-files',
  network: '/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/plat-stdio-files',
  service: '/api/v1/namespaces/team/services/plat-stdio-files',
  deployment: '/apis/apps/v1/namespaces/team/deployments/plat-stdio-files',
} as const
const KEY_SECRET = '/api/v1/namespaces/team/secrets/files'

const SPEC = {
  stdio: {
    image: 'registry.example/files:1',
    command: 'server-files',
    args: ['/data'],
    env: [
      { name: 'MODE', value: 'strict' },
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 'files', key: 'token' } } },
    ],
  },
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

const secretOf = (token: string) => ({ data: { token: Buffer.from(token).toString('base64') } })

/** An operator that runs stdio servers, and one of them with its Secret. */
async function setUp(
  t: TestContext,
  { spec = SPEC, token = 'hunter2' }: { readonly spec?: object; readonly token?: string | null } = {},
) {
  const cluster = await setUpOperators(t)
  const { server } = cluster
  if (token !== null) server.put(KEY_SECRET, secretOf(token))
  server.put(`${SERVERS}/files`, { spec })
  const condition = (type: string): Condition | undefined => {
    const conditions: readonly Condition[] = Object(server.get(`${SERVERS}/files`)).status?.conditions ?? []
    return conditions.find((one) => one.type === type)
  }
  const exist = () => Object.values(PATHS).filter((path) => server.get(path) !== undefined).length
  return { ...cluster, condition, exist, operator: await cluster.start(...FLAGS) }
}

const podOf = (deployment: JsonObject | undefined) => Object(deployment).spec.template
const digestIn = (deployment: JsonObject | undefined): string =>
  podOf(deployment).metadata.annotations['plat.dev/stdio-digest']

test('a stdio server becomes a Deployment that only the gateway can call, with its certificate and token', async (t) => {
  // Shows D2.server.stdio.cluster, D2.server.stdio.env.
  const { server, rendered, exist, condition } = await setUp(t)
  await until(
    () => exist() === 5 && rendered('upstreams')?.servers['team/files'] !== undefined,
    'everything is applied',
  )
  const { url, stdio, caPEM, auth } = rendered('upstreams').servers['team/files']
  assert.deepEqual([url, stdio], ['https://plat-stdio-files.team.svc:8443/team/files', 'service'])
  assert.deepEqual(auth, { type: 'bearerSecret', credentialKey: 'team.files' })
  const secret = Object(server.get(PATHS.secret)).data
  assert.equal(Buffer.from(secret['tls.crt'], 'base64').toString(), caPEM)
  assert.equal(new X509Certificate(caPEM).checkHost('plat-stdio-files.team.svc'), 'plat-stdio-files.team.svc')
  const credentials = Object(server.get(`${OUT}/secrets/plat-upstream-credentials`)).data
  const token = Buffer.from(credentials['team.files.token'], 'base64').toString()
  assert.match(token, /^[\w-]{43}$/)
  const all =
    JSON.stringify(Object.values(PATHS).map((path) => server.get(path))) + Buffer.from(secret['server.json'], 'base64')
  assert.ok(!all.includes(token), 'only the gateway has the token')
  assert.ok(!all.includes('hunter2') && !all.includes(Buffer.from('hunter2').toString('base64')))
  const { ingress, policyTypes } = Object(server.get(PATHS.network)).spec
  assert.deepEqual(policyTypes, ['Ingress'])
  assert.deepEqual(ingress[0].from, [
    {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'plat-system' } },
      podSelector: { matchLabels: { app: 'gateway', tier: 'data' } },
    },
  ])
  const { uid } = Object(server.get(`${SERVERS}/files`)).metadata
  for (const path of Object.values(PATHS))
    assert.deepEqual(
      Object(server.get(path)).metadata.ownerReferences.map((one: JsonObject) => [
        one.kind,
        one.name,
        one.uid,
        one.controller,
      ]),
      [['MCPServer', 'files', uid, true]],
    )
  const starting = /^no pod of Deployment plat-stdio-files is ready/
  await until(() => starting.test(condition('Running')?.message ?? ''), 'the status')
})

test('the condition Running follows the Deployment', async (t) => {
  const { server, exist, condition } = await setUp(t)
  await until(() => exist() === 5, 'everything is applied')
  const say = (conditions: readonly object[]) =>
    server.put(PATHS.deployment, { ...server.get(PATHS.deployment), status: { conditions } })
  const failed = { type: 'Progressing', status: 'False', message: 'it has timed out progressing' }
  say([{ type: 'Available', status: 'False' }, failed])
  await until(() => condition('Running')?.reason === 'Failed', 'the failure')
  assert.match(
    condition('Running')?.message ?? '',
    /it has timed out progressing; kubectl -n team describe pod -l plat\.dev/,
  )
  say([{ type: 'Available', status: 'True' }])
  await until(() => condition('Running')?.status === 'True', 'it runs')
  assert.equal(condition('Ready')?.status, 'True')
})

test('changes by others are repaired, and a changed resource starts a new pod', async (t) => {
  const { server, exist } = await setUp(t)
  await until(() => exist() === 5, 'everything is applied')
  for (const path of [PATHS.service, PATHS.network, PATHS.deployment]) {
    server.remove(path)
    await until(() => server.get(path) !== undefined, `${path} is there again`)
  }
  const before = server.get(PATHS.network)
  server.put(PATHS.network, { ...before, spec: { podSelector: {} } })
  await until(() => Object(server.get(PATHS.network)).spec.ingress !== undefined, 'the NetworkPolicy is repaired')
  const digest = digestIn(server.get(PATHS.deployment))
  server.put(`${SERVERS}/files`, { spec: { stdio: { ...SPEC.stdio, args: ['/other'] } } })
  await until(() => digestIn(server.get(PATHS.deployment)) !== digest, 'a new pod')
})

test('a server that is deleted, or has a url now, leaves nothing behind; objects of others stay', async (t) => {
  const { server, rendered, exist } = await setUp(t)
  await until(() => exist() === 5, 'everything is applied')
  server.put(`${SERVERS}/files`, { spec: { url: 'https://files.example/mcp' } })
  await until(() => exist() === 0, 'everything is deleted')
  await until(() => rendered('upstreams').servers['team/files'].url === 'https://files.example/mcp', 'the url')
  const foreign = { data: {}, metadata: { ownerReferences: [{ kind: 'Team', name: 'x', uid: 'y', controller: true }] } }
  server.put(PATHS.secret, foreign)
  server.put(`${SERVERS}/files`, { spec: SPEC })
  await until(() => server.get(PATHS.account) !== undefined, 'what comes before')
  server.remove(`${SERVERS}/files`)
  await until(() => server.get(PATHS.account) === undefined, 'it is deleted again')
  assert.deepEqual(Object(server.get(PATHS.secret)).data, {})
})

test('an object of another owner is never changed, and the condition says so', async (t) => {
  const { server, exist, condition } = await setUp(t, { token: null })
  server.put(PATHS.service, { spec: { selector: { own: 'yes' } } })
  server.put(KEY_SECRET, secretOf('late'))
  server.put(`${SERVERS}/files`, { spec: { stdio: { ...SPEC.stdio, args: [] } } })
  await until(() => condition('Running')?.reason === 'NotApplied', 'the conflict')
  assert.equal(
    condition('Running')?.message,
    'Service team/plat-stdio-files exists and does not belong to this MCPServer',
  )
  assert.deepEqual([Object(server.get(PATHS.service)).spec, exist()], [{ selector: { own: 'yes' } }, 4])
})

test('without a Secret nothing is started or stopped, and the status names it', async (t) => {
  const { server, exist, condition } = await setUp(t, { token: null })
  await until(() => condition('Ready')?.status === 'False', 'the status')
  assert.equal(
    condition('Ready')?.message,
    'stdio.env[1].valueFrom.secretKeyRef: no Secret team/files/token: the server is not started with it',
  )
  assert.equal(exist(), 0)
  assert.equal(server.get(PATHS.deployment), undefined)
})

test('what a cluster cannot run is refused with its field', async (t) => {
  const stdio = {
    command: 'x',
    cwd: 'relative',
    isolation: { hidden: ['/a'], writable: ['data', '/etc', '/data', '/data'] },
  }
  const { condition, exist } = await setUp(t, { spec: { stdio } })
  await until(() => condition('Ready')?.status === 'False', 'the status')
  assert.deepEqual(condition('Ready')?.message.split('; '), [
    'stdio.image: Required value on a cluster: the image with the program',
    'stdio.cwd: must be absolute on a cluster',
    'stdio.isolation.hidden: not on a cluster: use an image without these files',
    'stdio.isolation.writable[0]: on a cluster must be an absolute path without . and .. and :, other than /',
    'stdio.isolation.writable[1]: must not cover /etc/plat-stdio',
    'stdio.isolation.writable[3]: is listed twice',
  ])
  assert.equal(exist(), 0)
})

test('a server with isolation has no network and its own writable folders', async (t) => {
  const stdio = { ...SPEC.stdio, isolation: { network: false, writable: ['/data'] } }
  const { server, exist } = await setUp(t, { spec: { stdio } })
  await until(() => exist() === 5, 'everything is applied')
  const network = Object(server.get(PATHS.network)).spec
  assert.deepEqual([network.policyTypes, network.egress], [['Ingress', 'Egress'], undefined])
  const { containers, volumes } = podOf(server.get(PATHS.deployment)).spec
  const mount = containers[0].volumeMounts.find((one: JsonObject) => one.mountPath === '/data')
  assert.deepEqual(
    volumes.find((one: JsonObject) => one.name === mount.name),
    { name: mount.name, emptyDir: { sizeLimit: '1Gi' } },
  )
})

test('while the key cannot be read, everything else is rendered, and what stdio servers have stays', async (t) => {
  const { server, rendered, exist, start, operator } = await setUp(t)
  await until(
    () => exist() === 5 && rendered('upstreams')?.servers['team/files'] !== undefined,
    'everything is applied',
  )
  await operator.drain()
  server.faults.push({ request: /^GET .*\/plat-stdio-key$/, status: 500, reason: 'InternalError' })
  server.put(`${API}/namespaces/team/toolpolicies/p`, { spec: { rules: [{ name: 'all', action: 'allow' }] } })
  await start(...FLAGS)
  await until(() => rendered('policies').policies.length === 1, 'the policy is in force')
  assert.ok(rendered('upstreams').servers['team/files'] !== undefined)
  assert.equal(exist(), 5)
})

test('another leader changes nothing, and without the flag servers are refused', async (t) => {
  const { server, exist, operator, start, condition } = await setUp(t)
  await until(() => exist() === 5, 'everything is applied')
  const versions = () => Object.values(PATHS).map((path) => podVersion(server.get(path)))
  const before = versions()
  await operator.drain()
  const next = await start(...FLAGS)
  await until(() => condition('Running') !== undefined, 'the status')
  assert.deepEqual(versions(), before)
  await next.drain()
  await start('-leader-elect=false')
  await until(() => condition('Ready')?.status === 'False', 'it is refused')
  assert.match(condition('Ready')?.message ?? '', /^stdio: needs an operator with -stdio-image/)
})

/** The content of an object, without what changes with each write. */
function podVersion(object: JsonObject | undefined): string {
  const { metadata, ...content } = Object(object)
  return JSON.stringify({ ...content, owner: metadata?.ownerReferences })
}
