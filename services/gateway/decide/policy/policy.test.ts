import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { PolicyFile, RuleEntry } from '@plat/resources/rendered'
import fc from 'fast-check'
import type { Identity, Target } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { compilePolicies, noPolicies, type PolicySet } from './compile.ts'
import { decodePolicies } from './decode.ts'
import { judge, judgeTool, judgeTools } from './judge.ts'
import type { PolicyInput } from './policy-input.ts'

const NOW = new TestClock().now()

const identity: Identity = {
  ...testIdentity,
  agent: 'assistant',
  session: 's1',
  user: 'ada',
  groups: ['dev', 'oncall'],
  verified: 'requester',
  tier: 'tier-1',
  scopes: new Set(['tools:notes']),
  jti: 'j1',
  expiresAt: NOW + 60_000,
  issuer: 'plat-identity',
}

const target: Target = {
  kind: 'mcp',
  key: 'default/notes',
  server: 'notes',
  tool: 'delete_note',
  trust: 'untrusted',
  dataClass: 'internal',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
}

function fileOf(rules: readonly RuleEntry[], agents = ['assistant']): PolicyFile {
  const policy = { name: 'default/assistant', namespace: 'default', agents, cedar: '', rules: [...rules] }
  return {
    version: 1,
    generation: 7,
    revision: 'sha256:ab',
    policies: [{ ...policy, mode: 'enforce', defaultAction: 'deny' }],
  }
}

function setOf(rules: readonly RuleEntry[]): PolicySet {
  const compiled = compilePolicies(fileOf(rules))
  if ('problems' in compiled) assert.fail(compiled.problems.join('\n'))
  return compiled.set
}

function ask(rules: readonly RuleEntry[], args: unknown, more: Partial<PolicyInput> = {}) {
  const bytes = typeof args === 'string' ? Buffer.from(args) : Buffer.from(JSON.stringify(args))
  return judge(setOf(rules), { ...question(bytes), ...more })
}

function question(args: PolicyInput['args']): PolicyInput {
  return {
    identity,
    target,
    tool: target.tool,
    operation: 'mcp.call',
    method: 'tools/call',
    taints: [],
    sinks: [],
    args,
    now: NOW,
  }
}

const allowAll: RuleEntry = { name: 'all', action: 'allow' }
const keep: RuleEntry = {
  name: 'keep',
  action: 'deny',
  match: { servers: ['notes'], tools: ['delete_note'] },
  when: "args.name.startsWith('keep-')",
  reason: 'notes to keep stay',
}

test('a deny whose condition holds wins over an allow and names policy, rule, reason and revision', () => {
  const decision = ask([allowAll, keep], { name: 'keep-this' })
  assert.deepEqual(
    [decision.action, decision.policy, decision.rule, decision.reason, decision.revision],
    ['deny', 'default/assistant', 'keep', 'notes to keep stay', 'sha256:ab'],
  )
  assert.equal(ask([allowAll, keep], { name: 'other' }).action, 'allow')
})

test('a condition that cannot be evaluated denies in a deny and does not allow in an allow', () => {
  assert.equal(ask([allowAll, keep], {}).action, 'deny')
  assert.equal(ask([allowAll, keep], { name: 4 }).action, 'deny')
  assert.equal(ask([{ ...keep, action: 'allow' }], {}).rule, null)
  assert.equal(ask([{ name: 'text', action: 'allow', when: "'yes'" }], {}).action, 'deny')
  assert.equal(ask([allowAll, keep], '{"name": broken').action, 'deny')
})

test('an agent without a policy is denied with a reason that names policyRef', () => {
  const decision = judge(noPolicies, question(null))
  assert.equal(decision.action, 'deny')
  assert.match(decision.reason, /default\/assistant.*policyRef/)
  const elsewhere = judge(setOf([allowAll]), { ...question(null), identity: { ...identity, namespace: 'other' } })
  assert.equal(elsewhere.action, 'deny')
})

test('nothing matches: the default denies', () => {
  assert.equal(ask([], {}).action, 'deny')
  assert.equal(ask([], {}).policy, 'default/assistant')
})

test('values of a match key are ORed, keys are ANDed', () => {
  const cases: [RuleEntry['match'], boolean][] = [
    [{ servers: ['files', 'no*'] }, true],
    [{ servers: ['files'] }, false],
    [{ tools: ['delete_*'] }, true],
    [{ tools: ['read_*'] }, false],
    [{ skills: ['*'] }, false],
    [{ methods: ['tools/call'] }, true],
    [{ methods: ['resources/*'] }, false],
    [{ agents: ['assist*'] }, true],
    [{ agents: ['default/assistant'] }, true],
    [{ agents: ['other/*'] }, false],
    [{ tiers: ['tier-1'] }, true],
    [{ tiers: ['tier-2'] }, false],
    [{ groups: ['ops', 'on*'] }, true],
    [{ groups: ['ops'] }, false],
    [{ users: ['ada'] }, true],
    [{ users: ['bob'] }, false],
    [{ dataClasses: ['internal'] }, true],
    [{ dataClasses: ['public'] }, false],
    [{ servers: ['notes'], tiers: ['tier-2'] }, false],
    [{ servers: [] }, false],
  ]
  for (const [match, expected] of cases) {
    const action = ask([{ name: 'r', action: 'allow', ...(match && { match }) }], {}).action
    assert.equal(action === 'allow', expected, JSON.stringify(match))
  }
})

test('a session without a user matches no rule with users', () => {
  const anonymous = { identity: { ...identity, user: null } }
  assert.equal(ask([{ name: 'r', action: 'allow', match: { users: ['*'] } }], {}, anonymous).action, 'deny')
})

test('a rule with tools or skills never matches a message without one', () => {
  const read: Partial<PolicyInput> = { tool: null, target: { ...target, tool: null }, method: 'resources/read' }
  assert.equal(ask([{ name: 'r', action: 'allow', match: { tools: ['*'] } }], {}, read).action, 'deny')
  assert.equal(ask([{ name: 'r', action: 'allow', match: { methods: ['resources/read'] } }], {}, read).action, 'allow')
  assert.equal(ask([{ name: 'r', action: 'allow', match: { servers: ['notes'] } }], {}, read).action, 'allow')
  const both = { tools: ['*'], methods: ['resources/read'] }
  assert.equal(ask([{ name: 'r', action: 'allow', match: both }], {}, read).action, 'deny')
})

test('a skill target is matched by skills and by tools as skill:<id>', () => {
  const skill: Partial<PolicyInput> = { tool: 'skill:plan', target: { ...target, kind: 'a2a', tool: 'skill:plan' } }
  assert.equal(ask([{ name: 'r', action: 'allow', match: { skills: ['pl*'] } }], {}, skill).action, 'allow')
  assert.equal(ask([{ name: 'r', action: 'allow', match: { tools: ['skill:plan'] } }], {}, skill).action, 'allow')
})

test('a reason names the missing argument of the rule that denies, or of a rule that could have allowed', () => {
  const small: RuleEntry = { name: 'small', action: 'allow', when: 'args.amount < 10' }
  const forced: RuleEntry = { name: 'forced', action: 'deny', when: 'args.force' }
  const named: RuleEntry = { name: 'named', action: 'deny', when: "args.name == 'x'" }
  const night: RuleEntry = { name: 'night', action: 'deny', match: { tools: ['*'] } }
  const reason = (rules: RuleEntry[], args: object) => ask(rules, args).reason
  assert.match(reason([small], {}), /^argument "amount" is missing \(/)
  assert.match(reason([small, forced], {}), /^argument "force" is missing \(.*forced/)
  assert.doesNotMatch(reason([small, night], {}), /missing/)
  assert.doesNotMatch(reason([small, named], { name: 'x' }), /missing/)
})

test('every variable of when can be read', () => {
  const when = [
    'identity.tenant == null',
    "identity.namespace == 'default'",
    "identity.agent == 'assistant'",
    "identity.session == 's1'",
    "identity.user == 'ada'",
    "'oncall' in identity.groups",
    "identity.tier == 'tier-1'",
    "'tools:notes' in identity.scopes",
    "identity.verified == 'requester'",
    'identity.chain.size() == 0',
    "target.server == 'notes'",
    "target.tool == 'delete_note'",
    'target.skill == null && target.route == null && target.model == null && target.jurisdiction == null',
    "target.dataClass == 'internal' && target.trust == 'untrusted'",
    'taints.size() == 0',
    "method == 'tools/call'",
    "now > timestamp('2025-01-01T00:00:00Z') && now.getFullYear() == 2026",
    "args.list.exists(x, x.id == 2) && args.name.matches('^a+$')",
  ]
  for (const text of when) {
    const decision = ask([{ name: 'r', action: 'allow', when: text }], { name: 'aaa', list: [{ id: 1 }, { id: 2 }] })
    assert.equal(decision.action, 'allow', text)
  }
})

test('whole numbers that fit int64 are ints and every other number is a double, exactly', () => {
  const when = (text: string): RuleEntry[] => [{ name: 'r', action: 'allow', when: text }]
  const holds = (text: string, json: string) => ask(when(text), json).action === 'allow'
  assert.ok(holds('args.n == 9007199254740993', '{"n":9007199254740993}'))
  assert.ok(!holds('args.n == 9007199254740992', '{"n":9007199254740993}'))
  assert.ok(holds('type(args.n) == int && args.n < -9223372036854775807', '{"n":-9223372036854775808}'))
  assert.ok(holds('type(args.n) == double', '{"n":9223372036854775808}'))
  assert.ok(holds('type(args.n) == double && args.n == 1.0', '{"n":1.0}'))
  assert.ok(holds('type(args.n) == double', '{"n":1e3}'))
  assert.ok(holds('type(args.n) == int && args.n == 0', '{"n":-0}'))
})

test('ints beyond 2^53 compare like the integers that they are', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -2n, max: 2n }), (n, near) => {
      const limit = n + near
      fc.pre(limit >= -(2n ** 63n) + 1n && limit < 2n ** 63n)
      const action = ask([{ name: 'r', action: 'allow', when: `args.n <= ${limit}` }], `{"n":${n}}`).action
      assert.equal(action === 'allow', n <= limit)
    }),
    { numRuns: 200 },
  )
})

test('member names such as __proto__ are ordinary names in arguments', () => {
  const json = '{"constructor":1,"$typeName":"google.protobuf.Any","__proto__":{"name":"keep-x"},"toString":2}'
  assert.equal(
    ask([{ name: 'r', action: 'allow', when: 'args.constructor == 1 && !has(args.name)' }], json).action,
    'allow',
  )
})

test('the order of rules and policies never changes the verdict', () => {
  const rule = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    action: fc.constantFrom('allow' as const, 'deny' as const, 'require_approval' as const),
    match: fc.record({ tools: fc.constantFrom('delete_note', 'delete_*', 'read_note', '*').map((one) => [one]) }),
    when: fc.constantFrom("args.name == 'x'", 'args.missing == 1', 'true', 'false'),
  })
  fc.assert(
    fc.property(
      fc
        .array(rule, { maxLength: 8 })
        .chain((rules) => fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length }))),
      ([rules, shuffled]) => assert.equal(ask(rules, { name: 'x' }).action, ask(shuffled, { name: 'x' }).action),
    ),
    { numRuns: 300 },
  )
})

/** The caller of a list. */
const listed = { identity, target, taints: [], sinks: [], now: NOW }

test('in a list a condition on args shows what may be allowed and hides nothing', () => {
  const isVisible = (rules: RuleEntry[], tool: string) => judgeTool(setOf(rules), listed, tool)
  assert.ok(isVisible([allowAll, keep], 'delete_note'))
  assert.ok(isVisible([{ ...keep, action: 'allow' }], 'delete_note'))
  assert.ok(!isVisible([{ ...keep, action: 'allow' }], 'read_note'))
  assert.ok(isVisible([{ ...keep, action: 'require_approval' }], 'delete_note'))
  assert.ok(!isVisible([allowAll, { name: 'no', action: 'deny', when: "identity.user == 'ada'" }], 'read_note'))
  assert.ok(!isVisible([allowAll, { name: 'no', action: 'deny', match: { methods: ['tools/call'] } }], 'read_note'))
  assert.ok(!judgeTool(noPolicies, listed, 'read_note'))
})

test('a list of 100,000 tools is judged in slices, between which other callbacks run', async () => {
  const rules: RuleEntry[] = [{ name: 'read', action: 'allow', match: { tools: ['read_*'] } }]
  const tools = Array.from({ length: 100_000 }, (_, at) => (at % 2 === 0 ? `read_${at}` : `write_${at}`))
  let turns = 0
  const count = () => {
    turns++
    waiting = setImmediate(count)
  }
  let waiting = setImmediate(count)
  const visible = await judgeTools(setOf(rules), { ...listed, sinksOf: () => [] }, tools)
  clearImmediate(waiting)
  assert.ok(turns > 1, `${turns} turns`)
  assert.ok(visible.every((isShown, at) => isShown === (at % 2 === 0)))
  assert.equal(visible.length, tools.length)
})

test('args is a variable only where the expression does not bind the name itself', () => {
  const rules: RuleEntry[] = [allowAll, { name: 'no', action: 'deny', when: "['x'].exists(args, args == 'x')" }]
  assert.ok(!judgeTool(setOf(rules), listed, 'read_note'))
})

test('an expression that cannot be compiled refuses the file and says where and why', () => {
  const faults: [string, RegExp][] = [
    ['args.name ==', /^policies\[0\]\.rules\[0\]\.when: not a CEL expression/],
    ["arg.name == 'x'", /unknown variable "arg", did you mean "args"\?/],
    ['args.name.beginsWith("x")', /unknown function "beginsWith"/],
  ]
  for (const [when, expected] of faults) {
    const compiled = compilePolicies(fileOf([{ name: 'r', action: 'deny', when }]))
    assert.ok('problems' in compiled)
    assert.match(compiled.problems[0] ?? '', expected)
  }
})

test('a rule matches a session that has one of its taints and a tool that has one of its sinks', () => {
  const rules: RuleEntry[] = [allowAll, { name: 'no', action: 'deny', match: { taints: ['secret*'], sinks: ['mail'] } }]
  const action = (taints: string[], sinks: string[]) => ask(rules, {}, { taints, sinks }).action
  assert.equal(action(['other', 'secret-1'], ['web', 'mail']), 'deny')
  assert.equal(action(['other'], ['mail']), 'allow')
  assert.equal(action(['secret-1'], ['web']), 'allow')
  assert.equal(action([], []), 'allow')
})

test('only a refusal for both taints and sinks says tainted_sink', () => {
  const code = (match: RuleEntry['match']) =>
    ask([{ name: 'no', action: 'deny', ...(match && { match }) }], {}, { taints: ['t'], sinks: ['s'] }).code
  assert.equal(code({ taints: ['*'], sinks: ['*'] }), 'tainted_sink')
  for (const match of [{ taints: ['*'] }, { sinks: ['*'] }, undefined]) assert.equal(code(match), undefined)
})

test('an expression sees the taints of the session', () => {
  const rules: RuleEntry[] = [allowAll, { name: 'no', action: 'deny', when: "'secret' in taints" }]
  assert.equal(ask(rules, {}, { taints: ['secret'] }).action, 'deny')
  assert.equal(ask(rules, {}, { taints: [] }).action, 'allow')
})

test('a list hides what the taints of its caller forbid', () => {
  const rules: RuleEntry[] = [allowAll, { name: 'no', action: 'deny', match: { taints: ['secret'], sinks: ['mail'] } }]
  const isVisible = (taints: string[], sinks: string[]) => judgeTool(setOf(rules), { ...listed, taints, sinks }, 'send')
  assert.ok(!isVisible(['secret'], ['mail']))
  assert.ok(isVisible(['secret'], []))
  assert.ok(isVisible([], ['mail']))
})

test('a file with unknown fields, wrong types, doubled members or another version is refused', () => {
  const good = JSON.stringify(fileOf([allowAll]))
  assert.ok(decodePolicies(Buffer.from(good)).ok)
  const bad = [
    good.replace('"generation"', '"generations"'),
    good.replace('"version":1', '"version":2'),
    good.replace('"generation":7', '"generation":"7"'),
    good.replace('"generation":7', '"generation":7,"generation":8'),
    good.replace('"action":"allow"', '"action":"permit"'),
    '[]',
    'not json',
    `${good} x`,
  ]
  for (const text of bad) assert.ok(!decodePolicies(Buffer.from(text)).ok, text)
})

test('all expressions over one message share a budget, and so does making their variables', () => {
  const items = (count: number) => ({ items: Array.from({ length: count }, () => 'a') })
  const rules = Array.from({ length: 40 }, (_, at): RuleEntry => {
    return { name: `r${at}`, action: 'require_approval', when: 'args.items.exists(x, x == "b")' }
  })
  const allow: RuleEntry = { name: 'all', action: 'allow' }
  assert.equal(ask([allow, ...rules.slice(0, 4)], items(3000)).action, 'allow')
  assert.match(ask([allow, ...rules], items(3000)).reason, /exceeded its cost budget/)
  const cheap: RuleEntry = { name: 'cheap', action: 'allow', when: 'size(args.items) > 0' }
  assert.equal(ask([cheap], items(10_000)).action, 'allow')
  assert.match(ask([cheap], items(20_000)).reason, /rule cheap .* exceeded its cost budget/)
  // Expressions that do not read the arguments cost nothing, however large these are.
  assert.equal(ask([{ name: 'who', action: 'allow', when: 'identity.agent != ""' }], items(20_000)).action, 'allow')
})

test('a "when" that exceeds its cost budget denies and says so, whatever its rule does', () => {
  const args = { items: Array.from({ length: 200_000 }, () => 1) }
  const allowAll: RuleEntry = { name: 'all', action: 'allow' }
  for (const action of ['allow', 'require_approval', 'deny'] as const) {
    const decision = ask([{ name: 'slow', action, when: 'args.items.all(x, x == 2 || x == 1)' }, allowAll], args)
    assert.equal(decision.action, 'deny')
    assert.match(decision.reason, /^the "when" of rule slow of policy default\/assistant exceeded its cost budget/)
  }
})

test('an expression sees what is forwarded beside the arguments', () => {
  const decided = (when: string, beside: PolicyInput['beside']) => {
    const rules = [
      { name: 'all', action: 'allow' as const },
      { name: 'no', action: 'deny' as const, when },
    ]
    return ask(rules, {}, beside === undefined ? {} : { beside }).action
  }
  const beside = {
    inputs: Buffer.from('{"a":{"action":"accept","content":{"n":9007199254740993}}}'),
    meta: Buffer.from('{"acme/to":"x","progressToken":1}'),
  }
  for (const when of [
    'inputResponses.a.content.n == 9007199254740993',
    'inputResponses.exists(k, inputResponses[k].action == "accept")',
    "meta['acme/to'] == 'x'",
    'meta.progressToken == 1',
  ])
    assert.equal(decided(when, beside), 'deny', when)
  for (const when of ["'acme/to' in meta", 'size(inputResponses) > 0']) {
    assert.equal(decided(when, {}), 'allow', when)
    assert.equal(decided(when, undefined), 'allow', when)
    // A list has no call yet.
    assert.equal(decided(when, 'unknown'), 'allow', when)
    assert.equal(ask([{ name: 'some', action: 'allow', when }], {}, { beside: 'unknown' }).action, 'allow', when)
  }
})
