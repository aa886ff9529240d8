import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { poolTable } from '@plat/core'
import { writeWhole } from '@plat/resources'
import { restFace } from '@plat/testkit/kubernetes/rest-face'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'

const GROUP = '/apis/plat.dev/v1alpha1'
const SERVERS = `${GROUP}/namespaces/default/mcpservers`

interface Sent {
  readonly token?: string
  readonly body?: object | string | null
}

/** A gateway with the resource API on a fresh folder, and these settings. */
async function setUp(t: TestContext, own: object = {}, drained = false) {
  const root = tempFolder()
  const auditPath = join(root, 'audit.jsonl')
  const resourceAPI = { enabled: true, dir: join(root, 'resources') }
  const { gateway } = await started(t, { auditPath, resourceAPI, ...own }, drained)
  const ask = async (method: string, path: string, { token = TOKEN, body = null }: Sent = {}) => {
    const response = await fetch(gateway.adminUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: body === null || typeof body === 'string' ? body : JSON.stringify(body),
    })
    const value: unknown = await response.json()
    return { status: response.status, headers: response.headers, body: Object(value) }
  }
  /** Writes atomically, as editors do: half a file would be a load error for a moment. */
  const put = (path: string, text: string) => writeWhole(join(resourceAPI.dir, path), text)
  const records = () => wholeLines(auditPath).map((line) => JSON.parse(line).rec)
  return { gateway, ask, put, records, dir: resourceAPI.dir }
}

function server(name: string, namespace = 'default') {
  const spec = { url: `http://${name}.example/mcp` }
  return { apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer', metadata: { name, namespace }, spec }
}

test('a written resource is stored in the file of its path, for all readers of files', async (t) => {
  // Shows D3.state.resourceAPI.enabled, D3.state.resourceAPI.dir.
  const { ask, dir } = await setUp(t)
  assert.equal((await ask('POST', SERVERS, { body: server('notes') })).status, 201)
  const file = join(dir, 'mcpservers/default/notes.yaml')
  assert.match(readFileSync(file, 'utf8'), /^apiVersion: plat\.dev\/v1alpha1\nkind: MCPServer\n/)
  assert.equal((await ask('DELETE', `${SERVERS}/notes`)).status, 200)
  assert.equal(existsSync(file), false)
})

test('with auditFailurePolicy closed changes are recorded before they are made, and refused tokens are counted', async (t) => {
  const { gateway, ask, records } = await setUp(t, { auditFailurePolicy: 'closed' })
  assert.equal((await ask('POST', SERVERS, { body: server('notes') })).status, 201)
  await ask('GET', SERVERS)
  await ask('POST', `${SERVERS}?dryRun=All`, { body: server('other') })
  const admin = records().filter(({ kind }) => kind === 'admin')
  assert.deepEqual(
    admin.map(({ phase, path, status }) => ({ phase, path, status })),
    [
      { phase: 'intent', path: SERVERS, status: undefined },
      { phase: undefined, path: SERVERS, status: 201 },
    ],
  )
  assert.equal((await ask('GET', SERVERS, { token: 'a-guess' })).status, 401)
  const metrics = await (
    await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
  ).text()
  assert.match(metrics, /^plat_gateway_admin_auth_failures_total\{reason="invalid"\} 1$/m)
})

test('a manual edit is sent to watches, and a file that does not load is a warning in every list', async (t) => {
  const { gateway, ask, put } = await setUp(t)
  const face = restFace({ url: gateway.url, token: TOKEN })
  const seen: string[] = []
  const watching = (async () => {
    for await (const line of face.watch(`${SERVERS}?watch=true`)) {
      const { type, object } = Object(line)
      seen.push(`${type} ${object.metadata.name} ${object.spec.trust}`)
      if (seen.length === 2) break
    }
  })()
  await put('mcpservers/default/notes.yaml', JSON.stringify(server('notes')))
  await until(() => seen.length === 1, 'the event of the file')
  const trusted = { ...server('notes'), spec: { url: 'http://notes.example/mcp', trust: 'trusted' } }
  await put('mcpservers/default/notes.yaml', JSON.stringify(trusted))
  await watching
  assert.deepEqual(seen, ['ADDED notes untrusted', 'MODIFIED notes trusted'])
  await put('mcpservers/default/broken.yaml', JSON.stringify({ ...server('broken'), spec: {} }))
  const { headers } = await ask('GET', SERVERS)
  const problem = 'mcpservers/default/broken.yaml:1: spec.url: Required value: exactly one of url and stdio is required'
  assert.equal(headers.get('warning'), `299 - "${problem}"`)
  assert.equal((await ask('GET', `${GROUP}/agents`)).headers.get('warning'), null)
  await face.close()
})

test('requests without a token of the admin API are refused, also for discovery', async (t) => {
  const { gateway, ask } = await setUp(t)
  for (const path of ['/apis', '/api', '/openapi/v3', SERVERS]) {
    const { status, headers, body } = await ask('GET', path, { token: 'another' })
    assert.deepEqual([status, body.kind, body.reason], [401, 'Status', 'Unauthorized'], path)
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer/)
  }
  assert.equal((await fetch(`${gateway.url}/apis`)).status, 401)
  assert.equal((await fetch(`${gateway.url}/openapi/v30`)).status, 404)
  const large = await ask('POST', SERVERS, { body: ' '.repeat(2 * 1024 * 1024 + 1) })
  assert.deepEqual([large.status, large.body.reason], [413, 'RequestEntityTooLarge'])
})

test('viewers read and admins write, each in their namespaces, and attempts are recorded', async (t) => {
  const people = await provider(t)
  const adminAuth = {
    mode: 'oidc',
    roles: { viewer: ['user:vera'], admin: ['user:ada'], auditor: ['user:otto'] },
    namespaceRoles: { shop: { admin: ['user:sam'] } },
    oidc: { issuer: people.state.issuer, audience: AUDIENCE },
  }
  const { ask, records } = await setUp(t, { adminAuth })
  const as = async (user: string, method: string, namespace: string, body?: object) => {
    const token = await people.token({ preferred_username: user })
    const where = namespace === '' ? `${GROUP}/mcpservers` : `${GROUP}/namespaces/${namespace}/mcpservers`
    return ask(method, where, { token, ...(body && { body }) })
  }
  assert.equal((await as('ada', 'POST', 'shop', server('a', 'shop'))).status, 201)
  assert.equal((await as('sam', 'POST', 'shop', server('b', 'shop'))).status, 201)
  const refused = await as('sam', 'POST', 'bank', server('c', 'bank'))
  assert.equal(refused.status, 403)
  assert.equal(
    refused.body.message,
    'mcpservers.plat.dev is forbidden: User "user:sam" cannot create resource "mcpservers" in API group "plat.dev" in the namespace "bank"',
  )
  assert.equal((await as('vera', 'POST', 'shop', server('c', 'shop'))).status, 403)
  assert.equal((await as('vera', 'GET', '')).body.items.length, 2)
  assert.equal((await as('sam', 'GET', 'shop')).body.items.length, 2)
  for (const [user, namespace] of [
    ['sam', ''],
    ['sam', 'bank'],
    ['otto', 'shop'],
  ] as const) {
    assert.equal((await as(user, 'GET', namespace)).status, 403, `${user} ${namespace}`)
  }
  const admin = () => records().filter(({ kind }) => kind === 'admin')
  await until(() => admin().length === 4, 'the records of the attempts')
  assert.deepEqual(
    admin().map(({ action, by, path, status }) => [action, by, path, status]),
    [
      ['POST mcpservers', 'user:ada', `${GROUP}/namespaces/shop/mcpservers`, 201],
      ['POST mcpservers', 'user:sam', `${GROUP}/namespaces/shop/mcpservers`, 201],
      ['POST mcpservers', 'user:sam', `${GROUP}/namespaces/bank/mcpservers`, 403],
      ['POST mcpservers', 'user:vera', `${GROUP}/namespaces/shop/mcpservers`, 403],
    ],
  )
})

test('it is served on the listener of the admin API, and nowhere while off', async (t) => {
  const apart = await setUp(t, { adminListen: 'localhost:0' })
  assert.equal((await apart.ask('GET', SERVERS)).status, 200)
  const authorization = `Bearer ${TOKEN}`
  assert.equal((await fetch(apart.gateway.url + SERVERS, { headers: { authorization } })).status, 404)
  const off = await setUp(t, { resourceAPI: { enabled: false } })
  assert.equal((await off.ask('GET', SERVERS)).status, 404)
})

test('a gateway that shuts down ends its watches at once', async (t) => {
  const { gateway } = await setUp(t, { shutdownTimeoutSeconds: 120 }, true)
  const face = restFace({ url: gateway.url, token: TOKEN })
  const bookmark = '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const events: unknown[] = []
  let begun = () => {}
  const beginning = new Promise<void>((resolve) => {
    begun = resolve
  })
  const watching = (async () => {
    for await (const line of face.watch(`${SERVERS}?watch=true${bookmark}`)) {
      events.push(line)
      begun()
    }
  })()
  await beginning
  await Promise.all([gateway.drain(), watching])
  assert.equal(events.length, 1)
})

test('a caller at its share of watches is refused another, while a second caller watches', async (t) => {
  const people = await provider(t)
  const { gateway } = await setUp(t, {
    adminAuth: {
      mode: 'both',
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      roles: { viewer: ['user:ada'] },
    },
  })
  const watch = (token: string) => {
    const signal = AbortSignal.timeout(60_000)
    return fetch(`${gateway.adminUrl}${SERVERS}?watch=true`, { headers: { authorization: `Bearer ${token}` }, signal })
  }
  const share = poolTable.resource_watches.shares[0].max
  const open = await Promise.all(Array.from({ length: share }, () => watch(TOKEN)))
  assert.ok(open.every(({ status }) => status === 200))
  const refused = await watch(TOKEN)
  assert.equal(refused.status, 429)
  assert.match(await refused.text(), /too many open watches/)
  const other = await watch(await people.token({ preferred_username: 'ada' }))
  assert.equal(other.status, 200)
  const metrics = await (
    await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
  ).text()
  assert.match(metrics, new RegExp(`^plat_gateway_pool_used\\{pool="resource_watches"\\} ${share + 1}$`, 'm'))
  assert.match(metrics, /^plat_gateway_pool_refusals_total\{pool="resource_watches",bound="share"\} 1$/m)
  await Promise.all([...open, other].map(({ body }) => body?.cancel()))
})
