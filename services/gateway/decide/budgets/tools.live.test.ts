import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { denialIn, type RpcDenial } from '@plat/testkit/mcp/denial'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'

/** Longer than any test, in seconds. */
const A_LONG_WINDOW = 100_000_000

interface ToolsFixture {
  readonly upstream: ScriptedUpstream
  /** Starts a gateway on the ledger of this test. */
  start(): Promise<GatewayProcess>
  /** Ledger records. Call only while no gateway writes. */
  records(): Promise<readonly Readonly<Record<string, unknown>>[]>
}

async function setUp(t: TestContext, rules: readonly object[], config: object = {}): Promise<ToolsFixture> {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    const answer = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const tools = { 'default/notes/*': { perCall: '0.002' } }
  await Promise.all([
    writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules })])),
    writeFile(join(dir, 'prices.json'), JSON.stringify({ version: 1, currency: 'EUR', id: 'p', tools })),
  ])
  const files = {
    policyFile: join(dir, 'policies.json'),
    pricingFile: join(dir, 'prices.json'),
    auditPath: join(dir, 'audit.jsonl'),
  }
  return {
    upstream,
    async start() {
      const gateway = await startGatewayProcess({ servers: { notes: upstream.url }, config: { ...files, ...config } })
      t.after(() => gateway.close())
      return gateway
    },
    async records() {
      const text = await readFile(files.auditPath, 'utf8')
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).rec)
    },
  }
}

/** One `tools/call`. Returns null if it passed, else the refusal. */
async function call(gateway: GatewayProcess, tool = 'add_note'): Promise<RpcDenial | null> {
  const response = await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      authorization: `Bearer ${gateway.token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }),
  })
  return denialIn(JSON.parse(await response.text()))
}

test('a rule admits as many calls as its rate, denied calls count for none, and a restart keeps the count', async (t) => {
  const rateLimit = { count: 3, seconds: A_LONG_WINDOW, per: 'session' }
  const no = { name: 'no', action: 'deny', match: { tools: ['delete_note'] } }
  const { upstream, start } = await setUp(t, [{ name: 'slow', action: 'allow', rateLimit }, no])
  const first = await start()
  for (let count = 0; count < 5; count++) assert.equal((await call(first, 'delete_note'))?.code, 403)
  const answers = await Promise.all(Array.from({ length: 20 }, () => call(first)))
  const refused = answers.filter((answer) => answer !== null)
  assert.equal(upstream.received.length, 3)
  assert.equal(refused.length, 17)
  for (const { code, data } of refused) {
    assert.deepEqual([code, data.error, data.rule], [429, 'rate_limited', 'slow'])
    assert.ok(Number(data.retryAfterMs) > 0)
  }
  await first.close()
  const second = await start()
  assert.equal((await call(second))?.data.error, 'rate_limited')
  assert.equal(upstream.received.length, 3)
})

test('a tool with a price is refused when the session budget is used up', async (t) => {
  const all = { name: 'all', action: 'allow' }
  const { upstream, start, records } = await setUp(t, [all], { sessionBudgetUSD: 0.005 })
  const gateway = await start()
  const answers = await Promise.all(Array.from({ length: 10 }, () => call(gateway)))
  const refused = answers.filter((answer) => answer !== null)
  assert.deepEqual([upstream.received.length, refused.length], [2, 8])
  assert.ok(refused.every(({ code, data }) => code === 429 && data.error === 'budget_exceeded'))
  await gateway.close()
  const outcomes = (await records()).filter(({ kind }) => kind === 'outcome')
  assert.deepEqual(
    outcomes.map(({ costMicros, currency }) => [costMicros, currency]),
    [
      [2000, 'EUR'],
      [2000, 'EUR'],
    ],
  )
})
