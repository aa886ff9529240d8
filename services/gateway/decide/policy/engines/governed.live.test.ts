import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started } from '../../../testing/started.ts'

interface EngineFixture {
  readonly engine: ScriptedUpstream
  readonly upstream: ScriptedUpstream
  /** Response to a call: `result`, or the error's `data`. `more`: members of its params. */
  call(tool: string, more?: JsonObject): Promise<JsonObject>
  /** Names of the tools that are shown. */
  list(): Promise<readonly string[]>
  /** The first `count` records of a kind, of `tools/call` alone, once they are written. */
  records(kind: string, count: number): Promise<readonly JsonObject[]>
  metrics(): Promise<string>
}

async function setUp(t: TestContext, policies: readonly JsonObject[], rego: JsonObject | null): Promise<EngineFixture> {
  const dir = tempFolder()
  const [engine, upstream] = [await startScriptedUpstream(), await startScriptedUpstream()]
  t.after(() => Promise.all([engine.close(), upstream.close()]))
  upstream.answers((request, response) => {
    const tools = ['read', 'write', 'odd'].map((name) => ({ name, inputSchema: { type: 'object' } }))
    const result = request.body.includes('tools/list') ? { tools } : { content: [] }
    return json(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))(request, response)
  })
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, policiesFile(policies))
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(t, {
    policyFile,
    auditPath,
    upstreams: { notes: upstream.url },
    ...(rego !== null && { policy: { rego: { url: engine.url, ...rego } } }),
  })
  const headers = {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json',
    'content-type': 'application/json',
  }
  const ask = async (method: string, params: JsonObject) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    return Object(await (await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body })).json())
  }
  return {
    engine,
    upstream,
    async call(name, more = {}) {
      const body = await ask('tools/call', { name, arguments: { n: 1 }, ...more })
      return denialIn(body)?.data ?? body.result
    },
    async list() {
      const { result } = await ask('tools/list', {})
      return result.tools.map(({ name }: { name: string }) => name)
    },
    async records(kind, count) {
      let found: readonly JsonObject[] = []
      const look = async () => {
        const lines = wholeLines(auditPath)
        const all = lines.map((line) => Object(JSON.parse(line)).rec)
        found = all.filter((rec) => rec.kind === kind && rec.method === 'tools/call')
        return found.length >= count
      }
      await until(look, `${count} records of kind ${kind}`)
      return found
    },
    metrics: async () => (await fetch(`${gateway.adminUrl}/metrics`)).text(),
  }
}

test('an engine that denies is obeyed: the caller, the record and the metrics say so', async (t) => {
  // Shows D3.metric.plat_gateway_rego_evaluations_total.
  const { engine, upstream, call, records, metrics } = await setUp(t, [testPolicy({})], {})
  engine.answers(json('{"result": {"action": "deny", "reason": "not on Sundays"}}'))
  const { error, policy: by } = await call('read')
  assert.deepEqual([error, by, upstream.received.length], ['policy_denied', 'rego', 0])
  const [denied] = await records('decision', 1)
  assert.deepEqual([denied?.policy, denied?.reason, denied?.rule], ['rego', 'not on Sundays', undefined])
  assert.deepEqual(denied?.engines, [
    { action: 'allow', name: 'native' },
    { action: 'deny', name: 'rego' },
  ])
  engine.answers((_, response) => void response.writeHead(500).end())
  assert.equal((await call('read')).error, 'policy_denied')
  engine.answers(json('{"result": true}'))
  assert.deepEqual(await call('read'), { content: [] })
  const text = await metrics()
  assert.match(text, /^plat_gateway_rego_evaluations_total\{outcome="ok"\} 2$/m)
  assert.match(text, /^plat_gateway_rego_evaluations_total\{outcome="error"\} 1$/m)
  const [, second] = await records('decision', 2)
  assert.equal(second?.reason, 'the policy engine (policy.rego) answered 500')
})

test('a list sends one request to the engine and hides tools without a verdict', async (t) => {
  const hidden = { name: 'no', action: 'deny', match: { tools: ['write'] } }
  const { engine, list } = await setUp(t, [testPolicy({ rules: [{ name: 'all', action: 'allow' }, hidden] })], {})
  engine.answers(json('{"result": {"tools": {"read": true, "write": true}}}'))
  assert.deepEqual(await list(), ['read'])
  assert.equal(engine.received.length, 1)
  assert.deepEqual(JSON.parse(engine.received[0]?.body ?? '').input.tools, ['read', 'write', 'odd'])
  engine.answers((_, response) => void response.writeHead(503).end())
  assert.deepEqual(await list(), [])
})

test('policies in dryRun change nothing, are counted by policy and verdict, and are recorded', async (t) => {
  // Shows D3.metric.plat_gateway_dryrun_decisions_total.
  const dry = testPolicy({ name: 'default/dry', mode: 'dryRun', rules: [{ name: 'no', action: 'require_approval' }] })
  const { engine, call, list, records, metrics } = await setUp(t, [testPolicy({}), dry], { enforcement: 'dryRun' })
  engine.answers(json('{"result": false}'))
  assert.deepEqual(await call('read'), { content: [] })
  assert.deepEqual(await list(), ['read', 'write', 'odd'])
  const text = await metrics()
  assert.match(text, /^plat_gateway_dryrun_decisions_total\{policy="default\/dry",would="require_approval"\} 1$/m)
  assert.match(text, /^plat_gateway_dryrun_decisions_total\{policy="rego",would="deny"\} 1$/m)
  const [outcome] = await records('outcome', 1)
  assert.deepEqual(outcome?.wouldBe, [
    { action: 'require_approval', policy: 'default/dry' },
    { action: 'deny', policy: 'rego' },
  ])
  assert.ok(outcome !== undefined && !('engines' in outcome))
})

test('a Cedar text of a policy decides beside its rules', async (t) => {
  const cedar = '@id("small") permit(principal, action, resource == Tool::"notes/read") when { context.args.n < 2 };'
  const { call, list, records, metrics } = await setUp(t, [testPolicy({ cedar })], null)
  assert.deepEqual(await call('read'), { content: [] })
  assert.equal((await call('write')).error, 'policy_denied')
  assert.deepEqual(await list(), ['read'])
  const [denied] = await records('decision', 1)
  assert.equal(denied?.reason, 'no Cedar policy of default/all permits this')
  assert.deepEqual(denied?.engines, [
    { action: 'allow', name: 'native' },
    { action: 'deny', name: 'cedar' },
  ])
  const text = await metrics()
  assert.match(text, /^plat_gateway_cedar_available 1$/m)
  assert.match(text, /^plat_gateway_cedar_policies_unavailable 0$/m)
})

const BESIDE: Readonly<Record<string, JsonObject>> = {
  'a rule': {
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'no', action: 'deny', when: 'has(inputResponses.a) || "acme/to" in meta' },
    ],
  },
  'a Cedar text': {
    cedar: `permit(principal, action, resource);
      forbid(principal, action, resource) when { context has inputResponses && context.inputResponses has a };
      forbid(principal, action, resource) when { context has meta && context.meta has "acme/to" };`,
  },
}

for (const [what, policy] of Object.entries(BESIDE))
  test(`${what} judges what is forwarded beside the arguments`, async (t) => {
    const { call, upstream } = await setUp(t, [testPolicy(policy)], null)
    assert.deepEqual(await call('read', { _meta: { progressToken: 1 } }), { content: [] })
    assert.equal((await call('read', { _meta: { 'acme/to': 'x' } })).error, 'policy_denied')
    assert.equal((await call('read', { inputResponses: { a: { action: 'accept' } } })).error, 'policy_denied')
    assert.equal(upstream.received.length, 1)
  })

test('a rule on arguments sees names with escapes as the server reads them, whatever earlier callers sent', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const policyFile = join(tempFolder(), 'policies.json')
  const no = { name: 'no', action: 'deny', when: 'has(args.force) && args.force == true' }
  await writeFile(policyFile, policiesFile([testPolicy({ rules: [{ name: 'all', action: 'allow' }, no] })]))
  const { gateway, issuer } = await started(t, { policyFile, upstreams: { notes: upstream.url } })
  const accept = 'application/json'
  const headers = { authorization: `Bearer ${issuer.token()}`, accept, 'content-type': accept }
  const isDenied = async (args: string) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":${args}}}`
    const response = await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body })
    return denialIn(Object(await response.json()))?.data.error === 'policy_denied'
  }
  // The engine learns the name `\u006`, as which it would read the name of the next requests.
  for (const path of ['"x"', '7']) assert.equal(await isDenied(`{"path":${path},"\\\\u006":true}`), false)
  for (const path of ['"x"', '7']) assert.equal(await isDenied(`{"path":${path},"\\u0066orce":true}`), true)
  assert.equal(upstream.received.length, 2)
})

test('an engine gets the content that is forwarded with the arguments', async (t) => {
  const { engine, call } = await setUp(t, [testPolicy({})], {})
  engine.answers(json('{"result": true}'))
  await call('read', { _meta: { 'acme/to': 'x' }, inputResponses: { a: { n: 1 } } })
  await call('read')
  const [first, second] = engine.received.map(({ body }) => JSON.parse(body).input)
  assert.deepEqual([first.meta, first.inputResponses], [{ 'acme/to': 'x' }, { a: { n: 1 } }])
  assert.deepEqual([second.args, 'meta' in second, 'inputResponses' in second], [{ n: 1 }, false, false])
})
