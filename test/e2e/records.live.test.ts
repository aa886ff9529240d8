import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeWhole } from '@plat/resources'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'

async function started(t: TestContext): Promise<GatewayProcess> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    const result = { content: [], tools: [], resources: [], prompts: [], contents: [], messages: [] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url, dead: 'http://127.0.0.1:9/mcp' },
    denied: ['delete_note'],
  })
  t.after(() => gateway.close())
  return gateway
}

interface RecordedRequest {
  readonly server?: string
  readonly method: string
  readonly params?: object
}

/** Makes a call and answers its id. */
async function ask(
  gateway: GatewayProcess,
  { server = 'notes', method, params = {} }: RecordedRequest,
): Promise<string> {
  const response = await fetch(`${gateway.url}/mcp/${server}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  await response.text()
  return response.headers.get('x-plat-decision-id') ?? ''
}

/** Sample lines, without comments. */
async function samples(gateway: GatewayProcess): Promise<string[]> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

async function sample(gateway: GatewayProcess, series: string): Promise<number> {
  const line = (await samples(gateway)).find((found) => found.startsWith(`${series} `))
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1))
}

const call = (name: string) => ({ method: 'tools/call', params: { name, arguments: {} } })

test('every governed call, whatever became of it, is in the hash-chained ledger, and the metrics count the records', async (t) => {
  // Shows D3.event.everyCallRecorded.
  const gateway = await started(t)
  const calls = [
    await ask(gateway, call('add_note')),
    await ask(gateway, call('delete_note')),
    await ask(gateway, { method: 'tools/list' }),
    await ask(gateway, { method: 'resources/list' }),
    await ask(gateway, { method: 'resources/read', params: { uri: 'file:///a' } }),
    await ask(gateway, { method: 'prompts/get', params: { name: 'p' } }),
    await ask(gateway, { server: 'dead', ...call('add_note') }),
    await ask(gateway, { server: 'elsewhere', ...call('add_note') }),
  ]
  const lines = async () => (await gateway.ledger()).map((line) => JSON.parse(line))
  const ended = async (id: string) =>
    (await lines()).filter(({ rec }) => rec.call === id && ['outcome', 'decision'].includes(rec.kind)).length
  for (const [at, id] of calls.entries()) {
    await until(async () => (await ended(id)) > 0, `the record of call ${at}`)
    assert.equal(await ended(id), 1, `call ${at}`)
  }
  const all = await lines()
  for (const [at, line] of all.entries()) assert.equal(line.prev, all[at - 1]?.hash ?? '0'.repeat(64))
  // Shows D3.audit.auditPath, D3.metric.plat_gateway_audit_head_seq,
  // D3.metric.plat_gateway_audit_committed_records_total and D3.metric.plat_gateway_audit_commit_seconds.
  const last = all.at(-1)?.seq
  await until(async () => (await sample(gateway, 'plat_gateway_audit_head_seq')) === last, 'the head of the ledger')
  assert.equal(await sample(gateway, 'plat_gateway_audit_committed_records_total'), all.length)
  const commits = await sample(gateway, 'plat_gateway_audit_commit_seconds_count')
  assert.ok(commits > 0 && commits <= all.length, `${commits} commits`)
  // The shipped alert uses the fraction of commits above 0.05 s.
  assert.ok((await sample(gateway, 'plat_gateway_audit_commit_seconds_bucket{le="0.05"}')) <= commits)
})

test('metrics stand on the gateway port in text format, with one build info and no series before its first event', async (t) => {
  const gateway = await started(t)
  // Shows D3.endpoint.metrics and D3.exposition.gatewayPort.
  const response = await fetch(`${gateway.url}/metrics`)
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  // Shows D3.exposition.noSeriesBeforeFirstEvent.
  const counted = (name: string) => text.split('\n').filter((line) => line.startsWith(`${name}{`))
  for (const name of ['decisions', 'requests', 'upstream_errors', 'auth_failures', 'tool_pin_events', 'revoked']) {
    assert.match(text, new RegExp(`# TYPE plat_gateway_${name}_total counter`))
    assert.deepEqual(counted(`plat_gateway_${name}_total`), [], name)
  }
  await ask(gateway, call('add_note'))
  await until(
    async () => (await sample(gateway, 'plat_gateway_decisions_total{action="allow",server="notes"}')) === 1,
    'the first decision',
  )
  // Shows D3.metric.plat_build_info, D3.exposition.buildInfo.labels and D3.exposition.buildInfo.one.
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  const [info, ...more] = counted('plat_build_info')
  assert.deepEqual(more, [])
  const labels =
    /^plat_build_info\{component="gateway",version="([^"]+)",commit="[^"]*",goversion="[^"]+",tags="[^"]*"\} 1$/
  assert.equal(labels.exec(info ?? '')?.[1], version)
})

test('metrics report the number and generation of policies, and the result of each load', async (t) => {
  // Shows D3.metric.plat_gateway_policies_loaded, D3.metric.plat_gateway_policy_revision and
  // D3.metric.plat_gateway_policy_reloads_total.
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  const put = (generation: number, ...names: string[]) =>
    writeWhole(
      policyFile,
      policiesFile(
        names.map((name) => testPolicy({ name: `default/${name}` })),
        generation,
      ),
    )
  await put(3, 'a')
  const gateway = await startGatewayProcess({
    servers: { notes: 'http://127.0.0.1:9/mcp' },
    config: { policyFile, policyReloadSeconds: 1 },
  })
  t.after(() => gateway.close())
  const counts = async () => ({
    loaded: await sample(gateway, 'plat_gateway_policies_loaded'),
    revision: await sample(gateway, 'plat_gateway_policy_revision'),
    ok: await sample(gateway, 'plat_gateway_policy_reloads_total{result="ok"}'),
    error: await sample(gateway, 'plat_gateway_policy_reloads_total{result="error"}'),
  })
  assert.deepEqual(await counts(), { loaded: 1, revision: 3, ok: 1, error: Number.NaN })
  await put(7, 'a', 'b')
  await until(async () => (await counts()).revision === 7, 'the new policies')
  await writeWhole(policyFile, 'broken')
  await until(async () => (await counts()).error === 1, 'the load that failed')
  assert.deepEqual(await counts(), { loaded: 2, revision: 7, ok: 2, error: 1 })
})
