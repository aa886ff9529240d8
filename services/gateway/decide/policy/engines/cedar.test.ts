import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { loadCedar } from '@plat/resources/cedar'
import type { PolicyEntry, PolicyFile, RuleEntry } from '@plat/resources/rendered'
import { tempFolder } from '@plat/testkit/local'
import { Snapshots } from '../../../call/index.ts'
import { testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { recordedMetrics } from '../../../testing/metrics.ts'
import { compilePolicies } from '../compile.ts'
import { createPolicies } from '../index.ts'
import { judge, judgeTool } from '../judge.ts'
import type { PolicyInput } from '../policy-input.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')
const ALLOW: RuleEntry = { name: 'all', action: 'allow' }
const PERMIT = '@id("all") permit(principal, action, resource);'

function policy(cedar: string, rules: readonly RuleEntry[] = [], more: Partial<PolicyEntry> = {}): PolicyEntry {
  const agents = [testIdentity.agent]
  const named = { name: 'default/p', namespace: testIdentity.namespace, agents }
  return { ...named, mode: 'enforce', defaultAction: 'deny', cedar, rules: [...rules], ...more }
}

function fileOf(...policies: PolicyEntry[]): PolicyFile {
  return { version: 1, generation: 1, revision: 'sha256:1', policies }
}

async function setOf(...policies: PolicyEntry[]) {
  const compiled = compilePolicies(fileOf(...policies), await loadCedar())
  if ('problems' in compiled) assert.fail(compiled.problems.join())
  return compiled.set
}

function question(args: unknown = {}, more: Partial<PolicyInput> = {}): PolicyInput {
  return {
    identity: testIdentity,
    target: testTarget,
    tool: 'add',
    operation: 'mcp.call',
    method: 'tools/call',
    taints: [],
    sinks: [],
    args: Buffer.from(JSON.stringify(args)),
    now: NOW,
    ...more,
  }
}

async function decided(entry: PolicyEntry, args: unknown = {}, more: Partial<PolicyInput> = {}) {
  const { action, policy: by, rule, reason, engines } = judge(await setOf(entry), question(args, more))
  return { action, by, rule, reason, engines: engines.map(({ name, action: decided }) => `${name} ${decided}`) }
}

test('arguments that Cedar would need too long for deny and say so', async () => {
  const items = (count: number, item: unknown) => ({ items: Array.from({ length: count }, () => item) })
  const path = (text: string, count: number) => ({ path: text.repeat(count) })
  for (const args of [items(2000, 1), items(400, { a: 'b' }), path('a', 350_000), path('é', 20_000), items(300, 1.5)])
    assert.equal((await decided(policy(PERMIT), args)).action, 'allow')
  for (const args of [
    items(20_000, 1),
    items(4000, { a: 'b' }),
    path('a', 2_000_000),
    path('é', 200_000),
    items(2000, 1.5),
    // The engine escapes what cannot be printed, and numbers without a type become records.
    path('\u007f', 200_000),
    items(1500, 1e300),
    items(600, [[[[[[[[]]]]]]]]),
  ]) {
    const { action, reason } = await decided(policy(PERMIT), args)
    assert.equal(action, 'deny')
    assert.match(reason, /^the Cedar text of policy default\/p exceeded its cost budget: the arguments are too large/)
  }
})

test('expressions and Cedar texts share the budget of a message, and those that are enforced come first', async () => {
  const items = { items: Array.from({ length: 2500 }, () => 1) }
  const when: RuleEntry = { name: 'w', action: 'allow', when: 'args.items.all(x, x == 1)' }
  assert.equal((await decided(policy(PERMIT), items)).action, 'allow')
  assert.match((await decided(policy(PERMIT, [when]), items)).reason, /^the Cedar text of policy default\/p exceeded/)

  const [first, second] = ['a', 'b'].map((name) => policy(PERMIT, [], { mode: 'dryRun', name: `default/${name}` }))
  if (first === undefined || second === undefined) throw new Error('no policies')
  const { action, wouldBe } = judge(await setOf(first, second, policy(PERMIT)), question(items))
  assert.equal(action, 'allow')
  assert.deepEqual(wouldBe, [
    { action: 'deny', policy: 'default/a' },
    { action: 'deny', policy: 'default/b' },
  ])
})

test('a policy with a Cedar text and no rules is decided by Cedar alone', async () => {
  assert.deepEqual(await decided(policy(PERMIT)), {
    action: 'allow',
    by: 'default/p',
    rule: 'all',
    reason: 'Cedar policy all of default/p',
    engines: ['cedar allow'],
  })
  const silent = await decided(policy('permit(principal, action, resource == Tool::"notes/other");'))
  assert.deepEqual([silent.action, silent.rule], ['deny', null])
  assert.equal(silent.reason, 'no Cedar policy of default/p permits this')
})

test('with rules as well both must allow; the stricter of them names itself', async () => {
  const both = await decided(policy(PERMIT, [ALLOW]))
  assert.deepEqual([both.action, both.rule, both.engines], ['allow', 'all', ['native allow', 'cedar allow']])
  const byRule = await decided(policy(PERMIT, [{ name: 'no', action: 'deny' }]))
  assert.deepEqual([byRule.action, byRule.rule, byRule.engines], ['deny', 'no', ['native deny', 'cedar allow']])
  const byCedar = await decided(policy(`${PERMIT} @id("never") forbid(principal, action, resource);`, [ALLOW]))
  assert.deepEqual([byCedar.action, byCedar.rule], ['deny', 'never'])
  assert.equal(byCedar.reason, 'Cedar policy never of default/p forbids this')
  const asking = await decided(policy(PERMIT, [{ name: 'ask', action: 'require_approval' }]))
  assert.deepEqual([asking.action, asking.rule], ['require_approval', 'ask'])
  const unmatched = await decided(policy(PERMIT, [{ ...ALLOW, match: { tools: ['other'] } }]))
  assert.deepEqual([unmatched.action, unmatched.engines], ['deny', ['native deny', 'cedar allow']])
})

test('a Cedar text sees caller, tool, labels, time and arguments', async () => {
  const sees = async (condition: string, more: Partial<PolicyInput> = {}) =>
    (
      await decided(
        policy(`permit(principal, action, resource) when { ${condition} };`),
        { path: '/tmp/x', n: 3 },
        more,
      )
    ).action
  const { namespace, agent, tier } = testIdentity
  for (const condition of [
    `principal == Agent::"${namespace}/${agent}" && action == Action::"mcp.call" && resource == Tool::"notes/add"`,
    `context.identity.namespace == "${namespace}" && context.identity.tier == "${tier}"`,
    '!(context.target has jurisdiction) && context.target.dataClass == "internal" && context.method == "tools/call"',
    'context.args.path like "/tmp/*" && context.args.n < 4',
    'context.now > datetime("2026-01-01") && context.now < datetime("2026-01-03")',
    'context.taints.isEmpty() && context.sinks.isEmpty()',
  ]) {
    assert.equal(await sees(condition), 'allow', condition)
  }
  const beside = { inputs: Buffer.from('{"a":{"action":"accept"}}'), meta: Buffer.from('{"acme/to":"x"}') }
  for (const condition of ['context.inputResponses.a.action == "accept"', 'context.meta["acme/to"] == "x"']) {
    assert.equal(await sees(condition, { beside }), 'allow', condition)
    assert.equal(await sees(condition), 'deny', condition)
    // In a list they are unknown, as the arguments are.
    assert.equal(await sees(condition, { args: 'unknown', beside: 'unknown' }), 'allow', condition)
  }
  const labels = { taints: ['secret'], sinks: ['mail'] }
  assert.equal(await sees('context.taints.contains("secret") && context.sinks.contains("mail")', labels), 'allow')
  const noTool = { tool: null, method: 'resources/read', operation: 'mcp.get' } as const
  assert.equal(await sees('resource == Tool::"notes" && action == Action::"mcp.get"', noTool), 'allow')
})

test('arguments that Cedar cannot represent deny, and are not quoted', async () => {
  const denied = await decided(policy(PERMIT), { secret: { __extn: { fn: 'ip', arg: 'hunter2' } } })
  assert.equal(denied.action, 'deny')
  assert.match(denied.reason, /^the arguments cannot be represented in Cedar: the member __extn/)
  assert.doesNotMatch(denied.reason, /hunter2/)
})

test('in a list Cedar hides what no arguments could make allowed', async () => {
  const visible = async (cedar: string) => {
    const { identity, target } = question()
    return judgeTool(await setOf(policy(cedar)), { identity, target, taints: [], sinks: [], now: NOW }, 'add')
  }
  assert.ok(await visible('permit(principal, action, resource) when { context.args.n > 1 };'))
  assert.ok(await visible(`${PERMIT} forbid(principal, action, resource) when { context.args.n > 1 };`))
  assert.ok(!(await visible(`${PERMIT} forbid(principal, action, resource == Tool::"notes/add");`)))
})

test('of several policies of one agent a text that forbids wins, and one that permits is enough', async () => {
  const set = async (...cedars: string[]) =>
    setOf(...cedars.map((cedar, n) => policy(cedar, [], { name: `default/p${n}` })))
  const other = 'permit(principal, action, resource == Tool::"notes/other");'
  assert.equal(judge(await set(other, PERMIT), question()).action, 'allow')
  assert.equal(judge(await set(PERMIT, 'forbid(principal, action, resource);'), question()).action, 'deny')
  const broken = judge(await set(PERMIT, 'permit('), question())
  assert.deepEqual([broken.action, broken.policy], ['deny', 'default/p1'])
})

test('a policy in dryRun decides nothing and reports its verdict; an agent with no other policy is not restricted', async () => {
  const dry = policy('', [{ name: 'no', action: 'deny' }], { mode: 'dryRun', name: 'default/dry' })
  const alone = judge(await setOf(dry), question())
  assert.deepEqual([alone.action, alone.policy, alone.rule], ['allow', 'default/dry', null])
  assert.deepEqual(alone.wouldBe, [{ action: 'deny', policy: 'default/dry' }])
  const cedar = policy(PERMIT, [], { mode: 'dryRun', name: 'default/cedar' })
  const enforced = policy('', [{ name: 'ask', action: 'require_approval' }])
  const beside = judge(await setOf(dry, enforced, cedar), question())
  assert.deepEqual([beside.action, beside.rule], ['require_approval', 'ask'])
  assert.deepEqual(beside.wouldBe, [
    { action: 'deny', policy: 'default/dry' },
    { action: 'allow', policy: 'default/cedar' },
  ])
})

/** Reads one policyFile as the gateway does. `counted`: whether the engine is available, and policies that need it in vain. */
async function read(t: TestContext, file: PolicyFile, cedar = loadCedar) {
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, JSON.stringify(file))
  const { metrics, of } = recordedMetrics()
  const errors: object[] = []
  const snapshots = new Snapshots()
  const policies = createPolicies({
    config: { policyFile, policyReloadSeconds: 2 },
    snapshots,
    clock: new TestClock(),
    log: { ...silentLog, error: (fields) => void errors.push(fields) },
    cedar,
    metrics,
  })
  t.after(() => policies.close())
  await policies.check()
  const [available, unavailable] = [of('plat_gateway_cedar_available'), of('plat_gateway_cedar_policies_unavailable')]
  return { counted: available.map((is, at) => [is === '1', Number(unavailable[at])]), errors, snapshots }
}

test('a text that does not compile denies alone, is reported and is counted', async (t) => {
  // Shows D3.metric.plat_gateway_cedar_policies_unavailable.
  const { counted, errors } = await read(t, fileOf(policy('permit('), policy(PERMIT, [], { name: 'default/q' })))
  assert.deepEqual(counted, [
    [true, 0],
    [true, 1],
  ])
  assert.equal(errors.length, 1)
  assert.match(JSON.stringify(errors), /"policy":"default\/p","fault":"not Cedar at line 1:8/)
})

test('without the engine every policy with a Cedar text denies, and others are what they were', async (t) => {
  // Shows D3.metric.plat_gateway_cedar_available.
  const noEngine = async () => null
  const { counted } = await read(t, fileOf(policy(PERMIT), policy(PERMIT, [ALLOW]), policy('', [ALLOW])), noEngine)
  assert.deepEqual(counted, [
    [true, 0],
    [false, 2],
  ])
  const compiled = compilePolicies(fileOf(policy(PERMIT, [ALLOW])), null)
  assert.ok('set' in compiled)
  assert.equal(judge(compiled.set, question()).action, 'deny')
  const without = await read(t, fileOf(policy('', [ALLOW])), () => assert.fail('the engine is not needed'))
  assert.deepEqual(without.counted, [
    [true, 0],
    [true, 0],
  ])
})
