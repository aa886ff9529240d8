import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { until } from '@plat/testkit/until'
import { FOLLOWED } from './kube/mirror.ts'
import type { Operator } from './start.ts'
import { API, OUT, setUpOperators } from './testing/operators.ts'

const SERVER = `${API}/namespaces/team/mcpservers/s`

const spec = (name: string) => ({ spec: { url: `https://${name}.example/mcp` } })

async function metrics({ url }: Operator): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

test('before every kind is listed nothing is rendered and no replica is ready', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  server.put(SERVER, spec('a'))
  const problem = { request: /^GET \/apis\/plat\.dev\/v1alpha1\/toolpolicies$/, status: 403, reason: 'Forbidden' }
  server.faults.push(problem)
  const operator = await start()
  const listed = () => server.seen.filter((request) => problem.request.test(request)).length
  await until(() => listed() >= 3, 'the kind to be listed again')
  assert.equal((await fetch(`${operator.url}/readyz`)).status, 503)
  assert.equal(operator.leads(), false)
  assert.ok(!server.seen.some((request) => request.startsWith('PATCH')))
  server.faults.length = 0
  await until(() => rendered('upstreams')?.servers['team/s'] !== undefined, 'everything is rendered')
  assert.equal((await fetch(`${operator.url}/readyz`)).status, 200)
})

test('a ConfigMap that cannot be written is tried again, and counted by the reason', async (t) => {
  // Shows D3.metric.plat_reconcile_errors_total.
  const { server, start, rendered } = await setUpOperators(t)
  server.put(SERVER, spec('a'))
  server.faults.push({ request: /^PATCH .*configmaps\/plat-budgets$/, status: 403, reason: 'Forbidden' })
  const operator = await start()
  const counted = /^plat_reconcile_errors_total\{controller="render",reason="Forbidden"\} [1-9]/m
  await until(async () => counted.test(await metrics(operator)), 'the failure is counted')
  // Rules come first: files after the failure were not written, and no status says that they are in force.
  assert.notEqual(rendered('policies'), null)
  assert.equal(rendered('upstreams'), null)
  assert.ok(!server.seen.some((request) => request.endsWith('/status')))
  server.faults.length = 0
  await until(() => Object(server.get(SERVER)).status?.gatewayKey === 'team/s', 'the status is written')
  assert.ok(rendered('upstreams').servers['team/s'] !== undefined)
})

test('a status is written after the rendering of what it speaks of', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  server.put(SERVER, spec('a'))
  await start()
  const observed = () => Object(server.get(SERVER)).status?.observedGeneration
  await until(() => observed() === 1, 'the first status')
  const hold = Promise.withResolvers<void>()
  server.held.push({ request: /^PATCH .*configmaps\/plat-upstreams$/, until: hold.promise })
  const written = () => server.seen.filter((request) => request === `PATCH ${SERVER}/status`).length
  const before = written()
  server.put(SERVER, { ...server.get(SERVER), ...spec('b') })
  const patches = () => server.seen.filter((request) => request === `PATCH ${OUT}/configmaps/plat-upstreams`).length
  await until(() => patches() === 2, 'the second rendering begins')
  // A change of nothing but a label is not a reason to speak of what is not rendered yet.
  server.put(SERVER, { ...server.get(SERVER), metadata: { labels: { a: 'b' } } })
  server.put(`${API}/namespaces/team/mcpservers/other`, spec('c'))
  assert.equal(written(), before)
  assert.equal(rendered('upstreams').servers['team/s'].url, 'https://a.example/mcp')
  hold.resolve()
  await until(() => observed() === 2, 'the second status')
  assert.equal(rendered('upstreams').servers['team/s'].url, 'https://b.example/mcp')
})

test('a broken watch goes on where it was, and one whose version is gone begins with a new list', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  server.put(SERVER, spec('a'))
  await start()
  await until(() => rendered('upstreams')?.servers['team/s'] !== undefined, 'the first rendering')
  await until(() => server.watching === FOLLOWED.length, 'every kind is watched')
  server.say('{"type":"MODIF')
  server.cutWatches()
  server.put(`${API}/namespaces/team/mcpservers/b`, spec('b'))
  await until(() => rendered('upstreams').servers['team/b'] !== undefined, 'the object created while no watch was open')
  const lists = () => server.seen.length
  await until(() => server.watching === FOLLOWED.length, 'every kind is watched again')
  server.faults.push({ request: /^GET .*mcpservers$/, status: 503, reason: 'ServiceUnavailable' })
  server.cutWatches()
  const before = lists()
  await until(() => lists() > before + 2, 'the watch is tried again')
  server.remove(`${API}/namespaces/team/mcpservers/b`)
  server.put(`${API}/namespaces/team/mcpservers/c`, spec('c'))
  server.forgetHistory()
  server.faults.length = 0
  await until(() => rendered('upstreams').servers['team/c'] !== undefined, 'what was made meanwhile')
  assert.deepEqual(Object.keys(rendered('upstreams').servers), ['team/c', 'team/s'])
})

test('the license is reported, and an invalid one has no effect on the operator', async (t) => {
  const { start, rendered } = await setUpOperators(t)
  const unlicensed = await start()
  await until(() => unlicensed.leads() && rendered('agents') !== null, 'it leads and renders')
  await until(
    async () => (await metrics(unlicensed)).includes('plat_billable_nodes{period="month"} 0'),
    'nodes are counted',
  )
  const licensed = await start('-license-file=/nowhere/license.jws')
  // Shows D3.metric.plat_license_node_limit. Without a license no day is left, and none is reported.
  const licenseMetrics = async (operator: Operator) =>
    (await metrics(operator)).match(/^plat_license_.* 1$|^plat_license_(?:days_left|node_limit) .*$/gm)
  const community = (state: string) => [
    `plat_license_state{edition="community",state="${state}"} 1`,
    'plat_license_node_limit 0',
  ]
  assert.deepEqual(await licenseMetrics(unlicensed), community('none'))
  assert.deepEqual(await licenseMetrics(licensed), community('invalid'))
  // A replica that does not lead counts nothing.
  assert.doesNotMatch(await metrics(licensed), /^plat_billable_nodes\{/m)
})

const POLICY = (name: string, namespace = 'team') => `${API}/namespaces/${namespace}/toolpolicies/${name}`

async function unready({ url }: Operator): Promise<readonly string[]> {
  const response = await fetch(`${url}/readyz`)
  return response.status === 200 ? [] : Object(await response.json()).reasons
}

test('a rendered file of several megabytes is compressed, and plain again once it is small', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  const operator = await start()
  await until(() => rendered('agents') !== null, 'the first rendering')
  const rules = Array.from({ length: 1000 }, (_, n) => ({ name: `r${n}`, action: 'allow', reason: 'x'.repeat(1000) }))
  for (const name of ['a', 'b', 'c']) server.put(POLICY(name), { spec: { rules } })
  const coded = () => Object(Object(server.get(`${OUT}/configmaps/plat-policies`)).binaryData)['policies.json.gz']
  const policies = () => JSON.parse(gunzipSync(Buffer.from(coded(), 'base64')).toString()).policies
  // The operator may render before all three are there.
  await until(() => coded() !== undefined && policies().length === 3, 'all policies, compressed')
  assert.deepEqual(Object.keys(server.get(`${OUT}/configmaps/plat-policies`) ?? {}).includes('data'), false)
  assert.equal(policies()[2].rules.length, 1000)
  assert.match(await metrics(operator), /^plat_rendered_configmap_bytes\{name="plat-policies"\} \d{5}$/m)
  assert.deepEqual(await unready(operator), [])
  // Compressed outputs count for the next generation too.
  for (const name of ['a', 'b', 'c']) server.remove(POLICY(name))
  await until(() => coded() === undefined, 'it is small again')
  assert.deepEqual(rendered('policies').policies, [])
  assert.ok(rendered('policies').generation >= 3)
})

test('an output that is refused keeps no other from being written, and the probe and a metric name it', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  const operator = await start()
  await until(() => rendered('agents') !== null, 'the first rendering')
  server.faults.push({
    request: /^PATCH .*(secrets\/plat-upstream-credentials|configmaps\/plat-memory)$/,
    status: 422,
    reason: 'Invalid',
  })
  const auth = { type: 'bearerSecret', secretRef: { name: 'keys', key: 'token' } }
  server.put('/api/v1/namespaces/team/secrets/keys', { data: { token: Buffer.from('t').toString('base64') } })
  server.put(SERVER, { spec: { ...spec('a').spec, auth } })
  server.put(`${API}/namespaces/team/memorystores/m`, { spec: { scope: 'user' } })
  server.put(POLICY('p'), { spec: { rules: [] } })
  server.put(`${API}/namespaces/team/agents/a`, { spec: { image: 'i', tier: 't', policyRef: 'p' } })
  server.put(`${API}/namespaces/plat-system/agentrevocations/r`, { spec: { target: { agent: 'team/a' } } })
  await until(() => rendered('revocations')?.revocations.length === 1, 'the revocation is written')
  await until(() => rendered('policies')?.policies.length === 1, 'the policy is written')
  await until(() => rendered('upstreams')?.servers['team/s'] !== undefined, 'the server is written')
  const failing = ['plat-memory', 'plat-upstream-credentials']
  await until(async () => (await unready(operator)).toSorted().join() === failing.join(), 'the probe names both')
  for (const name of failing)
    assert.match(await metrics(operator), new RegExp(`^plat_rendered_output_failed\\{name="${name}"\\} 1$`, 'm'))
  const ready = (path: string) =>
    Object(server.get(path)).status?.conditions?.find(({ type }: { type: string }) => type === 'Ready')
  await until(() => ready(POLICY('p'))?.status === 'True' || ready(POLICY('p')) === undefined, 'no status is wrong')
  assert.equal(ready(SERVER), undefined)
  server.faults.length = 0
  await until(async () => (await unready(operator)).length === 0, 'it is ready again')
  await until(() => ready(SERVER)?.status === 'True', 'the status of the server')
  assert.match(await metrics(operator), /^plat_rendered_output_failed\{name="plat-memory"\} 0$/m)
})

test('a revocation is written while the API server holds back another output', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  await start()
  await until(() => rendered('memory') !== null, 'the first rendering')
  const hold = Promise.withResolvers<void>()
  server.held.push({ request: /^PATCH .*plat-policies$/, until: hold.promise })
  server.put(POLICY('p'), { spec: { rules: [] } })
  const waiting = () => server.seen.filter((seen) => seen === `PATCH ${OUT}/configmaps/plat-policies`).length
  await until(() => waiting() === 2, 'the policies wait')
  server.put(`${API}/namespaces/plat-system/agentrevocations/r`, { spec: { target: { agent: 'team/a' } } })
  await until(() => rendered('revocations')?.revocations.length === 1, 'the revocation is written')
  assert.deepEqual(rendered('policies').policies, [])
  hold.resolve()
})

test('Secrets of one namespace that exceed its share refuse its own servers alone', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  const operator = await start()
  const withSecret = (namespace: string, bytes: number) => {
    const data = { token: Buffer.alloc(bytes, 'x').toString('base64') }
    server.put(`/api/v1/namespaces/${namespace}/secrets/keys`, { data })
    const auth = { type: 'bearerSecret', secretRef: { name: 'keys', key: 'token' } }
    server.put(`${API}/namespaces/${namespace}/mcpservers/s`, { spec: { ...spec('a').spec, auth } })
  }
  withSecret('greedy', 1_100_000)
  withSecret('team', 10)
  const copied = () => Object.keys(Object(Object(server.get(`${OUT}/secrets/plat-upstream-credentials`)).data))
  await until(() => copied().includes('team.s.token'), 'the other namespace has its credential')
  assert.deepEqual(copied(), ['team.s.token'])
  await until(() => rendered('upstreams')?.servers['team/s'] !== undefined, 'the server is written')
  const message = (namespace: string) =>
    Object(server.get(`${API}/namespaces/${namespace}/mcpservers/s`)).status?.conditions?.find(
      ({ type }: { type: string }) => type === 'Ready',
    )?.message
  await until(() => message('team') === '', 'the small one is in force')
  assert.equal(
    message('greedy'),
    'auth.secretRef: Secret greedy/keys/token exceeds the share of its namespace: calls of this server are refused',
  )
  assert.deepEqual(await unready(operator), [])
})

test('a leader that cannot renew its Lease works no more, and leads again once it can', async (t) => {
  const { server, start, rendered } = await setUpOperators(t)
  const operator = await start('-leader-elect-renew-deadline=500ms')
  await until(() => operator.leads() && rendered('agents') !== null, 'it leads')
  server.faults.push({ request: /leases/, status: 500, reason: 'InternalError' })
  await until(() => !operator.leads(), 'it stops by itself')
  server.put(SERVER, spec('a'))
  const leases = () => server.seen.filter((request) => request.includes('leases')).length
  const before = leases()
  await until(() => leases() > before + 3, 'requests for the Lease')
  assert.deepEqual(rendered('upstreams').servers, {})
  server.faults.length = 0
  await until(() => rendered('upstreams').servers['team/s'] !== undefined, 'it leads again')
})
