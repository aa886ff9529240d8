import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { createAuthority } from '@plat/testkit/authority'
import { json, problemsOf, setUpCluster, status } from './testing/fixture.ts'

/** A pod list in the table format of the API server. */
const PODS = {
  kind: 'Table',
  metadata: { continue: 'more', remainingItemCount: 7 },
  columnDefinitions: [
    { name: 'Name', priority: 0 },
    { name: 'Node', priority: 1 },
    { name: 'Status', priority: 0 },
  ],
  rows: [
    { cells: ['web-1', 'n1', 'Running'], object: { metadata: { namespace: 'shop' } } },
    { cells: ['web-2', 'n2', 'Failed'], object: { metadata: { namespace: 'bank' } } },
  ],
}
const withoutObjects = { ...PODS, rows: PODS.rows.map(({ cells }) => ({ cells, object: null })) }

test('a list is returned as rows, with the columns of kubectl', async (t) => {
  // Shows D3.k8sOps.enabled, D3.k8sOps.apiServer and D3.k8sOps.tokenFile.
  const fixture = await setUpCluster(t, { answer: (_, response) => json(response, 200, withoutObjects) })
  const result = await fixture.call('k8s_list', {
    kind: 'Pod',
    namespace: 'shop',
    labelSelector: 'a=b',
    continue: 'x&y',
  })
  assert.deepEqual(JSON.parse(String(result)), {
    apiVersion: 'v1',
    kind: 'Pod',
    columns: ['Name', 'Status'],
    rows: [
      ['web-1', 'Running'],
      ['web-2', 'Failed'],
    ],
    continue: 'more',
    remaining: 7,
  })
  const [{ method, path, query, headers } = assert.fail()] = fixture.seen
  assert.deepEqual([method, path], ['GET', '/api/v1/namespaces/shop/pods'])
  assert.deepEqual(query, { limit: '200', includeObject: 'None', labelSelector: 'a=b', continue: 'x&y' })
  assert.equal(headers.authorization, 'Bearer the-token')
  assert.match(String(headers.accept), /as=Table/)
  assert.ok(!('impersonate-user' in headers))
})

test('a list of all namespaces has the namespace of each row', async (t) => {
  const fixture = await setUpCluster(t, { answer: (_, response) => json(response, 200, PODS) })
  const { columns, rows } = JSON.parse(String(await fixture.call('k8s_list', { kind: 'pods', apiVersion: 'v1' })))
  assert.deepEqual([columns[0], rows[1]], ['Namespace', ['bank', 'web-2', 'Failed']])
  assert.deepEqual([fixture.seen[0]?.path, fixture.seen[0]?.query.includeObject], ['/api/v1/pods', 'Metadata'])
})

test('a list is limited to maxListItems, whatever the caller requests or the cluster returns', async (t) => {
  // Shows D3.k8sOps.maxListItems.
  const fixture = await setUpCluster(t, {
    config: { maxListItems: 1 },
    answer: (_, response) => json(response, 200, withoutObjects),
  })
  assert.match(String(await fixture.call('k8s_list', { kind: 'Pod', limit: 2 })), /^error: arguments\/limit/)
  const { rows } = JSON.parse(String(await fixture.call('k8s_list', { kind: 'Pod', namespace: 'shop' })))
  assert.deepEqual(rows, [['web-1', 'Running']])
  assert.equal(fixture.seen[0]?.query.limit, '1')
})

test('an object is returned without fields for machines', async (t) => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'example.com/owner': 'uma' }
  const metadata = { name: 'web', managedFields: [{}], annotations }
  const fixture = await setUpCluster(t, {
    answer: (_, response) => json(response, 200, { kind: 'Deployment', metadata, spec: { replicas: 2 } }),
  })
  const result = await fixture.call('k8s_get', { kind: 'Deployment', namespace: 'shop', name: 'web' })
  assert.deepEqual(JSON.parse(String(result)), {
    kind: 'Deployment',
    metadata: { name: 'web', annotations: { 'example.com/owner': 'uma' } },
    spec: { replicas: 2 },
  })
  assert.equal(fixture.seen[0]?.path, '/apis/apps/v1/namespaces/shop/deployments/web')
  assert.match(
    String(await fixture.call('k8s_get', { kind: 'Pod', name: 'a' })),
    /^error: arguments\/namespace: required for/,
  )
})

test('Secrets are never readable under any name, and names cannot traverse paths', async (t) => {
  const fixture = await setUpCluster(t, { config: { allowClusterScoped: true } })
  for (const kind of ['Secret', 'secrets', 'SECRET']) {
    for (const tool of ['k8s_get', 'k8s_list']) {
      const args = { kind, namespace: 'shop', ...(tool === 'k8s_get' && { name: 'a' }) }
      assert.equal(await fixture.call(tool, args), 'policy_denied: Secrets cannot be read here', `${tool} ${kind}`)
    }
  }
  const odd = { kind: 'Harmless', apiVersion: 'odd.example/v1', namespace: 'shop' }
  assert.equal(await fixture.call('k8s_list', odd), 'policy_denied: Secrets cannot be read here')
  assert.match(String(await fixture.call('k8s_list', { ...odd, kind: 'Astray' })), /has no kind Astray/)
  for (const name of ['..', '.', 'a/b', '../secrets/b', '%2e%2e', 'a?b', 'a b'])
    assert.match(
      String(await fixture.call('k8s_get', { kind: 'Pod', namespace: 'shop', name })),
      /^error: arguments\/name/,
    )
  for (const namespace of ['..', 'a/b', 'A', '%2e'])
    assert.match(String(await fixture.call('k8s_logs', { namespace, pod: 'a' })), /^error: arguments\/namespace/)
  for (const apiVersion of ['../v1', 'v1/../..', 'apps/v1/x', 'apps/../v1'])
    assert.match(String(await fixture.call('k8s_list', { kind: 'Pod', apiVersion })), /^error: arguments\/apiVersion/)
  assert.deepEqual(fixture.seen, [])
})

test('only configured namespaces are readable', async (t) => {
  // Shows D3.k8sOps.namespaces.
  const fixture = await setUpCluster(t, {
    config: { namespaces: ['shop', 'bank'] },
    answer: (_, response) => json(response, 200, withoutObjects),
  })
  const elsewhere = 'policy_denied: k8sOps.namespaces does not name the namespace vault'
  assert.equal(await fixture.call('k8s_list', { kind: 'Pod', namespace: 'vault' }), elsewhere)
  assert.equal(await fixture.call('k8s_get', { kind: 'Pod', namespace: 'vault', name: 'a' }), elsewhere)
  assert.equal(await fixture.call('k8s_logs', { namespace: 'vault', pod: 'a' }), elsewhere)
  const all = await fixture.call('k8s_list', { kind: 'Pod' })
  assert.equal(all, 'policy_denied: select one of the namespaces: shop, bank')
  assert.deepEqual(fixture.seen, [])
  assert.ok(Array.isArray(await fixture.call('k8s_list', { kind: 'Pod', namespace: 'bank' })))
})

test('cluster-scoped kinds are readable only if allowed', async (t) => {
  // Shows D3.k8sOps.allowClusterScoped.
  const answer = (_: unknown, response: Parameters<typeof json>[0]) => json(response, 200, withoutObjects)
  const shut = await setUpCluster(t, { config: { namespaces: ['shop'] }, answer })
  for (const args of [{ kind: 'Node' }, { kind: 'Node', namespace: 'shop' }]) {
    assert.match(String(await shut.call('k8s_list', args)), /^policy_denied: Node is cluster-scoped/)
  }
  assert.deepEqual(shut.seen, [])
  const open = await setUpCluster(t, { config: { namespaces: ['shop'], allowClusterScoped: true }, answer })
  assert.ok(Array.isArray(await open.call('k8s_list', { kind: 'Node' })))
  assert.equal(open.seen[0]?.path, '/api/v1/nodes')
})

test('a log is bounded by lines and bytes, and its newest lines are returned', async (t) => {
  // Shows D3.k8sOps.maxLogLines and D3.k8sOps.maxLogBytes.
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index} grün`)
  const fixture = await setUpCluster(t, {
    config: { maxLogLines: 3, maxLogBytes: 30 },
    answer({ query }, response) {
      if (query.container === 'long') response.end(`${'x'.repeat(20)}${'ü'.repeat(20)}`)
      else response.end(query.container === 'quiet' ? '' : `${lines.slice(-Number(query.tailLines)).join('\n')}\n`)
    },
  })
  const log = (args: object) => fixture.call('k8s_logs', { namespace: 'shop', pod: 'web-1', ...args })
  assert.deepEqual(await log({}), ['{"olderLeftOut":true}', 'line 38 grün\nline 39 grün'])
  assert.deepEqual(await log({ tailLines: 1 }), ['{"olderLeftOut":false}', 'line 39 grün'])
  assert.deepEqual(await log({ container: 'long' }), ['{"olderLeftOut":true}', 'ü'.repeat(15)])
  assert.deepEqual(await log({ container: 'quiet' }), ['{"olderLeftOut":false}', ''])
  assert.match(String(await log({ tailLines: 4 })), /^error: arguments\/tailLines/)
  await log({ container: 'app', previous: true, sinceSeconds: 60 })
  const { path, query } = fixture.seen.at(-1) ?? assert.fail()
  assert.equal(path, '/api/v1/namespaces/shop/pods/web-1/log')
  const { limitBytes: _, ...sent } = query
  assert.deepEqual(sent, { tailLines: '3', container: 'app', previous: 'true', sinceSeconds: '60' })
})

test('without configuration a list has 200 items, a log 200 lines and 64 KiB, and a request 10 seconds', async (t) => {
  // Shows D3.limit.clusterOps.
  const clock = new TestClock()
  const arrived = Promise.withResolvers<void>()
  const fixture = await setUpCluster(t, {
    clock,
    answer({ path, query }, response) {
      if (query.container === 'slow') {
        response.writeHead(200).write('{')
        arrived.resolve()
      } else if (path.endsWith('/log')) response.end('x'.repeat(70_000))
      else json(response, 200, withoutObjects)
    },
  })
  const log = (args: object = {}) => fixture.call('k8s_logs', { namespace: 'shop', pod: 'web-1', ...args })
  await fixture.call('k8s_list', { kind: 'Pod', namespace: 'shop' })
  assert.equal(fixture.seen.at(-1)?.query.limit, '200')
  assert.match(String(await fixture.call('k8s_list', { kind: 'Pod', limit: 201 })), /^error: arguments\/limit/)
  assert.equal((await log())[1]?.length, 65_536)
  assert.equal(fixture.seen.at(-1)?.query.tailLines, '200')
  assert.match(String(await log({ tailLines: 201 })), /^error: arguments\/tailLines/)
  const slow = log({ container: 'slow' })
  await arrived.promise
  await clock.advance(10_000)
  assert.match(String(await slow), /did not respond in time/)
  for (const [key, most] of Object.entries({ maxLogLines: 5000, maxLogBytes: 1024 * 1024, maxListItems: 1000 })) {
    assert.deepEqual(problemsOf({ [key]: most }), [])
    assert.equal(problemsOf({ [key]: most + 1 }).length, 1, key)
  }
})

test('every request impersonates the service account, over a connection with a verified certificate', async (t) => {
  // Shows D3.k8sOps.serviceAccount and D3.k8sOps.caFile.
  const now = systemClock.now()
  const root = await createAuthority({ name: 'cluster', ca: true, now })
  const leaf = await root.issue({ name: 'api', dnsNames: ['localhost'] })
  const key = String(leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const stranger = await createAuthority({ name: 'stranger', ca: true, now })
  const config = { serviceAccount: 'ops/reader', writes: { mode: 'apply' } }
  const fixture = await setUpCluster(t, { config, tls: { cert: leaf.pem, key, ca: root.pem } })
  await fixture.call('k8s_get', { kind: 'Pod', namespace: 'shop', name: 'a' })
  await fixture.call('k8s_logs', { namespace: 'shop', pod: 'a' })
  await fixture.call('k8s_delete_pod', { namespace: 'shop', name: 'a' })
  const users = fixture.seen.map(({ method, headers }) => `${method} ${headers['impersonate-user']}`)
  const user = 'system:serviceaccount:ops:reader'
  assert.deepEqual(users, [`GET ${user}`, `GET ${user}`, `DELETE ${user}`])
  const other = await setUpCluster(t, { tls: { cert: leaf.pem, key, ca: stranger.pem } })
  const result = await other.call('k8s_get', { kind: 'Pod', namespace: 'shop', name: 'a' })
  assert.match(String(result), /^error: .*certificate of its API server is not accepted/)
})

test('refusals of the cluster are described for a model, without the credential of the gateway', async (t) => {
  const codes: Record<string, number> = { gone: 404, forbidden: 403, busy: 429, away: 401, odd: 500 }
  const fixture = await setUpCluster(t, {
    answer({ path }, response) {
      const name = path.split('/').at(-1) ?? ''
      if (name === 'cut') response.destroy()
      else if (name === 'text') response.end('no JSON')
      else if (name === 'there') json(response, 200, {})
      else status(response, codes[name] ?? 200, `pods "${name}" it is`)
    },
  })
  const get = async (name: string) => String(await fixture.call('k8s_get', { kind: 'Pod', namespace: 'shop', name }))
  assert.equal(await get('gone'), 'error: the cluster has no such thing: pods "gone" it is')
  assert.match(await get('forbidden'), /^error: the cluster does not allow it/)
  assert.match(await get('busy'), /^error: the cluster is busy/)
  assert.match(await get('odd'), /^error: the cluster could not do it/)
  assert.match(await get('cut'), /^error: no response from the cluster: its API server broke/)
  assert.match(await get('text'), /^error: .*not respond with JSON/)
  assert.match(await get('away'), /^upstream_credential: the cluster does not accept the gateway: k8sOps.tokenFile$/)
  await fixture.token('another')
  await get('gone')
  assert.equal(fixture.seen.at(-1)?.headers.authorization, 'Bearer another')
  await fixture.token('two lines\nof text')
  assert.match(await get('gone'), /^upstream_credential: k8sOps.tokenFile/)
  await fixture.token('again')
  const { attempts } = await fixture.result('k8s_get', { kind: 'Pod', namespace: 'shop', name: 'there' })
  assert.deepEqual(
    attempts.map(({ endpoint, status: code }) => [endpoint, code]),
    [[fixture.url, 200]],
  )
})

test('requests time out, and an aborted call aborts its request', async (t) => {
  // Shows D3.k8sOps.timeoutSeconds.
  const clock = new TestClock()
  const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gone = Promise.withResolvers<void>()
  let count = 0
  const fixture = await setUpCluster(t, {
    clock,
    config: { timeoutSeconds: 7 },
    answer(_, response) {
      if (count === 1) response.on('close', gone.resolve)
      response.writeHead(200).write('{')
      arrived[count++]?.resolve()
    },
  })
  const log = (signal?: AbortSignal) => fixture.call('k8s_logs', { namespace: 'shop', pod: 'a' }, signal)
  const late = log()
  await arrived[0]?.promise
  await clock.advance(7_000)
  assert.match(String(await late), /did not respond in time \(k8sOps\.timeoutSeconds\)/)
  const stop = new AbortController()
  const left = log(stop.signal)
  await arrived[1]?.promise
  stop.abort()
  await gone.promise
  assert.match(String(await left), /the call was stopped/)
})
