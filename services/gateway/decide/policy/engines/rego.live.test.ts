import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import type { Decision } from '../../../call/index.ts'
import { testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { recordedMetrics } from '../../../testing/metrics.ts'
import type { PolicyInput } from '../policy-input.ts'
import { createRego, type Rego } from './rego.ts'

const ARGS = '{"amount":12345678901234567890,"note":"\\u00e9"}'

const input: PolicyInput = {
  identity: { ...testIdentity, namespace: 'default', agent: 'assistant', user: 'ada', groups: ['staff'] },
  target: { ...testTarget, jurisdiction: 'DE' },
  tool: 'add',
  operation: 'mcp.call',
  method: 'tools/call',
  taints: ['secret'],
  sinks: ['mail'],
  args: Buffer.from(ARGS),
  now: Date.parse('2026-01-02T03:04:05Z'),
}

const native = (action: Decision['action'], more: Partial<Decision> = {}): Decision => ({
  action,
  policy: 'default/p',
  rule: 'r',
  ruleSha256: 'f'.repeat(64),
  reason: 'as the rule says',
  revision: 'sha256:1',
  engines: [{ name: 'native', action }],
  wouldBe: [],
  rates: [{ key: 'rate/x', window: '1', cap: 1, amount: 1, unit: 'calls' }],
  ...more,
})

interface RegoFixture {
  readonly engine: ScriptedUpstream
  readonly clock: TestClock
  readonly counted: readonly string[]
  readonly rego: Rego
}

async function setUp(
  t: TestContext,
  own: Partial<Record<'enforcement' | 'bearerTokenFile', string>> = {},
): Promise<RegoFixture> {
  const engine = await startScriptedUpstream()
  const clock = new TestClock()
  const dialer = createDialer({ clock, log: silentLog })
  const { metrics, of } = recordedMetrics()
  const enforcement = own.enforcement === 'dryRun' ? 'dryRun' : 'enforce'
  const { bearerTokenFile = '' } = own
  const rego = createRego({
    config: {
      policy: { rego: { url: engine.url, timeoutMs: 250, enforcement, bearerTokenFile, jurisdiction: '' } },
      policyReloadSeconds: 2,
    },
    extraCA: null,
    dialer,
    clock,
    log: silentLog,
    metrics,
  })
  t.after(async () => {
    rego?.close()
    dialer.close()
    await engine.close()
  })
  assert.ok(rego !== null)
  return { engine, clock, counted: of('plat_gateway_rego_evaluations_total'), rego }
}

test('the stricter of rules and engine wins; both are named', async (t) => {
  // Shows D3.policy.rego.enforcement.enforce.
  // Shows D3.policy.rego.url, D3.policy.rego.strictestWins.
  const { engine, rego, counted } = await setUp(t)
  const order = ['allow', 'require_approval', 'deny'] as const
  for (const [here, rule] of order.entries()) {
    for (const [there, engineAction] of order.entries()) {
      engine.answers(json(JSON.stringify({ result: { action: engineAction, reason: 'as the engine says' } })))
      const decision = await rego.judge(input, native(rule))
      const strictest = there > here ? engineAction : rule
      assert.equal(decision.action, strictest)
      assert.deepEqual(decision.engines, [
        { name: 'native', action: rule },
        { action: engineAction, name: 'rego' },
      ])
      const { policy, rule: by, reason, ruleSha256, rates } = decision
      const byEngine = there > here
      assert.deepEqual([policy, by], byEngine ? ['rego', null] : ['default/p', 'r'])
      assert.equal(reason, byEngine ? 'as the engine says' : 'as the rule says')
      assert.equal(ruleSha256 === 'f'.repeat(64), !byEngine)
      assert.equal(rates.length, byEngine && engineAction === 'deny' ? 0 : 1)
    }
  }
  assert.deepEqual(new Set(counted), new Set(['ok']))
})

test('the engine gets the same input as rules, and the arguments as they were written', async (t) => {
  const { engine, rego } = await setUp(t)
  engine.answers(json('{"result": true}'))
  await rego.judge(input, native('allow'))
  const [request] = engine.received
  assert.ok(request !== undefined)
  assert.deepEqual([request.method, request.headers['content-type']], ['POST', 'application/json'])
  assert.ok(request.body.endsWith(`,"args":${ARGS}}}`))
  const { input: policyInput } = JSON.parse(request.body)
  assert.deepEqual(policyInput, {
    operation: 'mcp.call',
    method: 'tools/call',
    identity: {
      tenant: null,
      namespace: 'default',
      agent: 'assistant',
      session: testIdentity.session,
      user: 'ada',
      groups: ['staff'],
      tier: testIdentity.tier,
      scopes: [...testIdentity.scopes],
      verified: testIdentity.verified,
      chain: testIdentity.chain,
    },
    target: {
      server: 'notes',
      tool: 'add',
      skill: null,
      route: null,
      model: null,
      dataClass: 'internal',
      trust: 'untrusted',
      jurisdiction: 'DE',
    },
    taints: ['secret'],
    sinks: ['mail'],
    now: '2026-01-02T03:04:05.000Z',
    args: JSON.parse(ARGS),
  })
  await rego.judge({ ...input, args: null }, native('allow'))
  assert.equal(JSON.parse(engine.received[1]?.body ?? '').input.args, null)
  await rego.judge({ ...input, args: 'unknown' }, native('allow'))
  assert.ok(!('args' in JSON.parse(engine.received[2]?.body ?? '').input))
})

test('an engine that fails denies, says how, and is counted as an error', async (t) => {
  // Shows D3.error.policyEngine, D3.policy.rego.timeoutMs.
  const { engine, clock, rego, counted } = await setUp(t)
  const failing: readonly (readonly [Parameters<ScriptedUpstream['answers']>[0], RegExp])[] = [
    [(_, response) => void response.writeHead(500).end('{"result": true}'), /\(policy\.rego\) answered 500$/],
    [(_, response) => void response.writeHead(302, { location: '/else' }).end(), /answered 302$/],
    [json('{"result": "yes"}'), /returned a response that is not a verdict$/],
    [json('{"result": true'), /returned a response that is not a verdict$/],
    [json(JSON.stringify({ result: 'x'.repeat(5 * 1024 * 1024) })), /cannot be reached \(too_large\)$/],
    [(_, response) => void response.socket?.destroy(), /cannot be reached \(lost\)$/],
  ]
  for (const [script, reason] of failing) {
    engine.answers(script)
    const decision = await rego.judge(input, native('allow'))
    assert.deepEqual([decision.action, decision.policy], ['deny', 'rego'])
    assert.match(decision.reason, reason)
  }
  engine.answers(() => {})
  const waiting = rego.judge(input, native('allow'))
  await engine.request(failing.length + 1)
  await clock.advance(249)
  engine.answers(json('{"result": true}'))
  await clock.advance(1)
  const late = await waiting
  assert.deepEqual([late.action, late.reason], ['deny', 'the policy engine (policy.rego) did not answer in time'])
  assert.deepEqual(
    counted,
    Array.from({ length: failing.length + 1 }, () => 'error'),
  )
  assert.equal((await rego.judge(input, native('allow'))).action, 'allow')
})

test('arguments in invalid UTF-8 are denied without a query to the engine', async (t) => {
  const { engine, rego } = await setUp(t)
  engine.answers(json('{"result": true}'))
  const decision = await rego.judge({ ...input, args: Buffer.from([0x22, 0xff, 0x22]) }, native('allow'))
  assert.deepEqual([decision.action, engine.received.length], ['deny', 0])
})

test('an engine in dryRun changes nothing and reports its verdict', async (t) => {
  // Shows D3.policy.rego.enforcement.dryRun.
  // Shows D3.policy.rego.enforcement.
  const { engine, rego } = await setUp(t, { enforcement: 'dryRun' })
  engine.answers(json('{"result": false}'))
  const decision = await rego.judge(input, native('allow'))
  assert.deepEqual(decision, native('allow', { wouldBe: [{ action: 'deny', policy: 'rego' }] }))
  engine.answers((_, response) => void response.writeHead(503).end())
  assert.deepEqual((await rego.judge(input, native('allow'))).wouldBe, [{ action: 'deny', policy: 'rego' }])
  const shows = await rego.shows(input, ['add'])
  assert.ok(shows('add'))
})

test('the token is sent with each request and reread; without one no request is sent', async (t) => {
  // Shows D3.policy.rego.bearerTokenFile.
  const dir = tempFolder()
  const bearerTokenFile = join(dir, 'token')
  const { engine, clock, rego } = await setUp(t, { bearerTokenFile })
  engine.answers(json('{"result": true}'))
  await rego.check()
  assert.match((await rego.judge(input, native('allow'))).reason, /bearerTokenFile contains no token$/)
  assert.equal(engine.received.length, 0)
  const sent = async (token: string) => {
    await writeFile(bearerTokenFile, token)
    await clock.advance(2000)
    await rego.check()
    const { action } = await rego.judge(input, native('allow'))
    return [action, engine.received.at(-1)?.headers.authorization]
  }
  assert.deepEqual(await sent('one\n'), ['allow', 'Bearer one'])
  assert.deepEqual(await sent('two'), ['allow', 'Bearer two'])
  assert.deepEqual((await sent('not one token'))[0], 'deny')
})

test('a list sends one request for all tools; tools without a verdict are hidden, and all without a response', async (t) => {
  const { engine, rego } = await setUp(t)
  const tools = ['a', 'b', 'c', 'd']
  const listedTools = async () => {
    const shows = await rego.shows(
      { ...input, operation: 'mcp.list', method: 'tools/list', tool: null, args: 'unknown' },
      tools,
    )
    return tools.filter(shows)
  }
  engine.answers(json('{"result": {"tools": {"a": true, "b": "require_approval", "c": false}}}'))
  assert.deepEqual(await listedTools(), ['a', 'b'])
  const { input: policyInput } = JSON.parse(engine.received[0]?.body ?? '')
  assert.deepEqual(
    [engine.received.length, policyInput.tools, policyInput.target.tool, policyInput.operation],
    [1, tools, null, 'mcp.list'],
  )
  for (const answer of ['{"result": true}', '{"result": "allow"}', '{}', 'x']) {
    engine.answers(json(answer))
    assert.deepEqual(await listedTools(), [], answer)
  }
})

test('questions go over one connection that is kept', async (t) => {
  const { engine, rego } = await setUp(t)
  const sockets = new Set<unknown>()
  engine.answers((_, response) => {
    sockets.add(response.socket)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"result": true}')
  })
  for (let n = 0; n < 5; n++) assert.equal((await rego.judge(input, native('allow'))).action, 'allow')
  assert.equal(sockets.size, 1)
})
