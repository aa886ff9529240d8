import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { denialOf } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

const LIMIT_BYTES = 4_194_304

/** A gateway with an upstream that responds to every call, and one that cannot be reached. */
async function setUp(t: TestContext): Promise<GatewayProcess> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    const answer = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url, dead: 'http://127.0.0.1:9/mcp' },
    denied: ['delete_note'],
  })
  t.after(() => gateway.close())
  return gateway
}

interface DeniedRequest {
  readonly server?: string
  readonly tool?: string
  readonly token?: string | null
  /** Makes the body this long. */
  readonly bytes?: number
}

/** One `tools/call` of revision 2025-11-25. */
async function ask(gateway: GatewayProcess, { server = 'notes', tool = 'add_note', token, bytes }: DeniedRequest) {
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: tool, arguments: { text: '' } } }
  const short = JSON.stringify(call).length
  call.params.arguments.text = 'x'.repeat(Math.max(0, (bytes ?? short) - short))
  const bearer = token === undefined ? gateway.token : token
  const response = await fetch(`${gateway.url}/mcp/${server}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify(call),
  })
  const answer: { readonly id: number } = JSON.parse(await response.text())
  return { status: response.status, headers: response.headers, answer, id: response.headers.get('x-plat-decision-id') }
}

/** Kinds of the records that one call left, in order. */
async function recordsOf(gateway: GatewayProcess, call: string | null): Promise<string[]> {
  const lines = await gateway.ledger()
  return lines
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.call === call)
    .map((rec) => rec.kind)
}

/** Outcomes are appended, not awaited: a moment later all of them are there. */
async function settled(gateway: GatewayProcess, call: string | null, kinds: readonly string[]): Promise<void> {
  await until(async () => (await recordsOf(gateway, call)).length >= kinds.length, `records ${kinds.join(', ')}`)
  assert.deepEqual(await recordsOf(gateway, call), kinds)
}

async function metric(gateway: GatewayProcess, series: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  const line = text.split('\n').find((found) => found.startsWith(`${series} `))
  return line === undefined ? 0 : Number(line.slice(series.length + 1))
}

test('a token that must not be trusted gets 401 with a challenge, a metric by reason, and leaves no record', async (t) => {
  const gateway = await setUp(t)
  const before = (await gateway.ledger()).length
  const reasons = new Map<string, number>()
  for (const { name, token, reason } of gateway.issuer.invalid()) {
    // Some kinds of nonsense cannot be sent as a header at all, and a gateway knows no trust domain: its issuer does.
    if (!/^[\x21-\x7e]{1,8192}$/.test(token) || name === 'sub of another trust domain') continue
    const { status, headers } = await ask(gateway, { token })
    assert.equal(status, 401, name)
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer .*error="invalid_token"/, name)
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  }
  for (const expected of ['expired', 'audience', 'signature', 'typ']) {
    assert.ok((reasons.get(expected) ?? 0) > 0, `a token refused for ${expected} was tried`)
  }
  for (const [reason, count] of reasons) {
    assert.equal(await metric(gateway, `plat_gateway_auth_failures_total{reason="${reason}"}`), count, reason)
  }
  assert.equal((await ask(gateway, { token: null })).status, 401)
  assert.equal((await gateway.ledger()).length, before)
})

test('a missing scope is 403 with the scope in the challenge, before the name is looked up, and one record', async (t) => {
  const gateway = await setUp(t)
  for (const server of ['notes', 'no-such-server']) {
    const token = gateway.issuer.token({ scope: 'tools:other' })
    const { status, headers, id } = await ask(gateway, { server, token })
    assert.equal(status, 403)
    const challenge = headers.get('www-authenticate') ?? ''
    assert.match(challenge, /error="insufficient_scope"/)
    assert.match(challenge, new RegExp(`scope="tools:${server}"`))
    await settled(gateway, id, ['decision'])
  }
})

test('a denied tool is a result that names policy and rule, with one record', async (t) => {
  const gateway = await setUp(t)
  const { status, answer, id } = await ask(gateway, { tool: 'delete_note' })
  assert.equal(status, 200)
  assert.equal(answer.id, 7)
  const { code, data } = denialOf(answer)
  assert.equal(code, 403)
  assert.deepEqual(data, { error: 'policy_denied', policy: 'default/assistant', rule: 'denied', decisionId: id })
  await settled(gateway, id, ['decision'])
})

test('a dead upstream is upstream_error, with the intent and one outcome', async (t) => {
  const gateway = await setUp(t)
  const { status, answer, id } = await ask(gateway, { server: 'dead' })
  assert.equal(status, 200)
  const { code, data } = denialOf(answer)
  assert.deepEqual([code, data.error], [502, 'upstream_error'])
  await settled(gateway, id, ['intent', 'outcome'])
})

test('a body of 5 MiB is 413 with one record, and one of exactly the limit passes', async (t) => {
  const gateway = await setUp(t)
  const large = await ask(gateway, { bytes: 5 * 1024 * 1024 })
  assert.equal(large.status, 413)
  await settled(gateway, large.id, ['decision'])
  const fitting = await ask(gateway, { bytes: LIMIT_BYTES })
  assert.equal(fitting.status, 200)
  await settled(gateway, fitting.id, ['intent', 'outcome'])
  assert.equal((await ask(gateway, { bytes: LIMIT_BYTES + 1 })).status, 413)
})
