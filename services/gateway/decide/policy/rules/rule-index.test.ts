import assert from 'node:assert/strict'
import { test } from 'node:test'
import { glob, TestClock } from '@plat/core'
import type { PolicyFile, RuleEntry, RuleMatch } from '@plat/resources/rendered'
import fc from 'fast-check'
import type { Identity, Target } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { compilePolicies, type PolicySet } from '../compile.ts'
import { judge } from '../judge.ts'
import type { PolicyInput } from '../policy-input.ts'
import { rateOf } from './rates.ts'
import { FOUND_MAX, FOUND_MAX_CHARS } from './rule-index.ts'

const NOW = new TestClock().now()

function setOf(policies: readonly (readonly RuleEntry[])[]): PolicySet {
  const file: PolicyFile = {
    version: 1,
    generation: 1,
    revision: 'sha256:ab',
    policies: policies.map((rules, index) => ({
      name: `default/p${index}`,
      namespace: 'default',
      agents: ['a', 'b'],
      mode: 'enforce',
      defaultAction: 'deny',
      cedar: '',
      rules: [...rules],
    })),
  }
  const compiled = compilePolicies(file)
  if ('problems' in compiled) assert.fail(compiled.problems.join('\n'))
  return compiled.set
}

interface RuleQuery {
  readonly agent: string
  readonly user: string | null
  readonly groups: readonly string[]
  readonly tier: string
  readonly server: string
  readonly tool: string | null
  readonly method: string
  readonly dataClass: Target['dataClass']
}

function policyInputOf({ agent, user, groups, tier, server, tool, method, dataClass }: RuleQuery): PolicyInput {
  const identity: Identity = {
    ...testIdentity,
    agent,
    session: 's1',
    user,
    groups,
    tier,
    jti: 'j1',
    expiresAt: NOW,
  }
  const target: Target = {
    kind: 'mcp',
    key: `default/${server}`,
    server,
    tool,
    trust: 'untrusted',
    dataClass,
    jurisdiction: null,
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  }
  return {
    identity,
    target,
    tool,
    operation: 'mcp.call',
    method,
    taints: [],
    sinks: [],
    args: Buffer.from('{}'),
    now: NOW,
  }
}

const STRICTNESS = { allow: 1, require_approval: 2, deny: 3 }

/** The verdict by the words of docs/spec/crds.md: each rule of each policy is evaluated in turn, without an index or a cache. */
function walked(policies: readonly (readonly RuleEntry[])[], query: RuleQuery) {
  const input = policyInputOf(query)
  let strictest: { action: RuleEntry['action']; policy: string; rule: string } | null = null
  const rates: unknown[] = []
  for (const [index, rules] of policies.entries()) {
    for (const rule of rules) {
      if (!matches(rule.match ?? {}, query) || rule.when === 'false') continue
      const policy = `default/p${index}`
      const verdict = { action: rule.action, policy, rule: rule.name }
      if (rule.action === 'deny') return { ...verdict, rates: [] }
      if (rule.rateLimit !== undefined) rates.push(...rateOf(rule.rateLimit, { policy, rule: rule.name })(input))
      if (strictest === null || STRICTNESS[rule.action] > STRICTNESS[strictest.action]) strictest = verdict
    }
  }
  return strictest === null ? { action: 'deny', policy: 'default/p0', rule: null, rates: [] } : { ...strictest, rates }
}

function matches(match: RuleMatch, { agent, user, groups, tier, server, tool, method, dataClass }: RuleQuery): boolean {
  const skill = tool?.startsWith('skill:') ? tool.slice('skill:'.length) : null
  const any = (patterns: readonly string[] | undefined, ...texts: readonly (string | null)[]) =>
    patterns === undefined || patterns.some((one) => texts.some((text) => text !== null && glob(one)(text)))
  const agents = match.agents?.some((one) => glob(one)(one.includes('/') ? `default/${agent}` : agent)) ?? true
  const place = any(match.servers, server) && any(match.tools, tool) && any(match.skills, skill)
  const caller = any(match.tiers, tier) && any(match.groups, ...groups) && any(match.users, user)
  return agents && place && caller && any(match.methods, method) && any(match.dataClasses, dataClass)
}

const names = (...patterns: string[]) =>
  fc.option(fc.array(fc.constantFrom(...patterns), { maxLength: 3 }), { nil: undefined, freq: 2 })

const match: fc.Arbitrary<RuleMatch> = fc
  .record({
    servers: names('s1', 's2', 's3', 's*'),
    tools: names('t1', 't2', 'skill:x', 't*', '*'),
    skills: names('x', 'y', '*'),
    methods: names('tools/call', 'tools/*', 'prompts/get'),
    agents: names('a', 'b', 'default/a', 'default/*', 'other/a', 'a*'),
    tiers: names('one', 'two', 'o*'),
    groups: names('g1', 'g2', 'g*'),
    users: names('ada', 'bob', 'a*'),
    dataClasses: names('internal', 'public'),
  })
  .map(dropAbsent)

/** At most two keys stay, so that rules match often enough to be compared. */
function dropAbsent(all: { readonly [K in keyof RuleMatch]: string[] | undefined }): RuleMatch {
  const given = Object.entries(all).filter(([, patterns]) => patterns !== undefined)
  return Object.fromEntries(given.slice(0, 2))
}

const rule = (match: fc.Arbitrary<RuleMatch>): fc.Arbitrary<RuleEntry> =>
  fc
    .record({
      name: fc.constantFrom('r1', 'r2', 'r3', 'r4', 'r5', 'r6'),
      action: fc.constantFrom('allow' as const, 'allow' as const, 'require_approval' as const, 'deny' as const),
      match,
      when: fc.constantFrom(undefined, undefined, 'true', 'false'),
      count: fc.constantFrom(0, 0, 5),
    })
    .map(({ name, action, match, when, count }) => ({
      name,
      action,
      match,
      ...(when !== undefined && { when }),
      ...(count > 0 && { rateLimit: { count, seconds: 60, per: 'agent' as const } }),
    }))

/** Few rules of all kinds, or so many of one name that the index leaves them out. */
const policies = fc.array(
  fc.oneof(
    fc.array(rule(match), { maxLength: 8 }),
    fc.array(rule(fc.constantFrom({ servers: ['s1'] }, { servers: ['s1'], tools: ['t1'] }, { users: ['ada'] })), {
      minLength: 17,
      maxLength: 40,
    }),
  ),
  { minLength: 1, maxLength: 2 },
)

const queries: fc.Arbitrary<RuleQuery> = fc.record({
  agent: fc.constantFrom('a', 'b'),
  user: fc.constantFrom('ada', 'bob', null),
  groups: fc.constantFrom([], ['g1'], ['g2', 'g1'], ['g1', 'g1']),
  tier: fc.constantFrom('one', 'two'),
  server: fc.constantFrom('s1', 's2', 's4'),
  tool: fc.constantFrom('t1', 't2', 'skill:x', null),
  method: fc.constantFrom('tools/call', 'prompts/get'),
  dataClass: fc.constantFrom('internal' as const, 'restricted' as const),
})

test('verdict, rule, reason and rates equal those of a linear scan', () => {
  let decided = 0
  fc.assert(
    fc.property(policies, fc.array(queries, { minLength: 1, maxLength: 6 }), (rules, questions) => {
      const set = setOf(rules)
      // Twice: from the memory the answer is the same.
      for (const question of [...questions, ...questions]) {
        const { action, policy, rule: name, rates } = judge(set, policyInputOf(question))
        assert.deepEqual({ action, policy, rule: name, rates }, walked(rules, question))
        if (name !== null) decided++
      }
    }),
    { numRuns: 1_000 },
  )
  assert.ok(decided > 1_000)
})

const MANY = 1_000

/** How many of a thousand rules a call meets. */
function met(match: (n: number) => RuleMatch, more: (n: number) => Partial<RuleEntry> = () => ({})): number {
  const rules = Array.from(
    { length: MANY },
    (_, n): RuleEntry => ({ name: `r${n}`, action: 'allow', match: match(n), ...more(n) }),
  )
  const policy = setOf([rules]).byAgent.get('default')?.get('a')?.rules[0]
  const question = { user: 'u500', groups: ['g500', 'g2000'], tier: 'one', server: 's500', tool: 't500' } as const
  const input = policyInputOf({
    ...question,
    agent: 'a',
    method: 'tools/call',
    dataClass: 'internal',
  })
  return policy?.rules.candidates(input).length ?? Number.NaN
}

test('of a thousand rules a call meets those of its server, tool, user, group or agent', () => {
  assert.equal(
    met((n) => ({ servers: [`s${n}`] })),
    1,
  )
  assert.equal(
    met((n) => ({ servers: ['s500'], tools: [`t${n}`] })),
    1,
  )
  assert.equal(
    met((n) => ({ servers: ['s500'], tools: [`t${n}`, '*'], methods: ['tools/*', `x${n}`] })),
    MANY,
  )
  assert.equal(
    met((n) => ({ servers: ['s500'], tools: [`t${n}*`], methods: ['tools/*', `x${n}`] })),
    3,
  )
  assert.equal(
    met((n) => ({ methods: ['tools/call'], users: [`u${n}`] })),
    1,
  )
  assert.equal(
    met((n) => ({ servers: ['*'], groups: [`g${n}`] })),
    1,
  )
  assert.equal(
    met((n) => ({ agents: [n === 500 ? 'default/a' : `default/a${n}`] })),
    1,
  )
  assert.equal(
    met((n) => ({ servers: n % 2 === 0 ? ['s500', 's500'] : ['s1'], tiers: ['one'], users: [`u${n}`] })),
    1,
  )
  assert.equal(
    met(() => ({ servers: [] })),
    0,
  )
})

test('a rule is evaluated beside one that always matches the same calls only if it is stricter or has counters', () => {
  const here = { servers: ['s500'] }
  const metHere = (more: (n: number) => Partial<RuleEntry>) => met(() => here, more)
  assert.equal(
    metHere(() => ({})),
    1,
  )
  assert.equal(
    metHere((n) => ({ rateLimit: { count: n + 1, seconds: 60, per: 'agent' } })),
    MANY,
  )
  assert.equal(
    metHere((n) => ({ action: n % 100 === 99 ? 'require_approval' : 'allow' })),
    1,
  )
  // Where it is not sure that it matches, those behind it may decide.
  assert.equal(
    metHere((n) => (n < 10 ? { when: 'args.x == 1' } : {})),
    11,
  )
  assert.equal(
    metHere((n) => (n === 5 ? { action: 'deny' } : {})),
    1,
  )
  // Only the strictest rule for another tier is evaluated, in any order.
  const elsewhere = { match: { ...here, tiers: ['two'] } }
  const actions = ['require_approval', 'allow', 'deny'] as const
  assert.equal(
    metHere((n) => (n % 2 === 0 ? { ...elsewhere, action: actions[n % 3] ?? 'allow' } : {})),
    2,
  )
  // One that only may match keeps none out.
  assert.equal(
    metHere((n) => (n < 20 ? { ...elsewhere, action: 'deny', when: 'args.x == 1' } : {})),
    21,
  )
})

test('names that callers make up do not fill the memory of found rules', () => {
  const set = setOf([[{ name: 'all', action: 'allow', match: { tools: ['*'] } }]])
  const rules = set.byAgent.get('default')?.get('a')?.rules[0]?.rules
  const question = {
    agent: 'a',
    user: null,
    groups: [],
    tier: 'one',
    method: 'tools/call',
    dataClass: 'public',
  } as const
  for (let n = 0; n < FOUND_MAX * 2.5; n++) {
    assert.equal(judge(set, policyInputOf({ ...question, server: 's', tool: `tool-${n}` })).action, 'allow')
    assert.ok(rules !== undefined && rules.cachedPairs <= FOUND_MAX)
  }
  const before = rules?.cachedPairs
  const long = 'x'.repeat(FOUND_MAX_CHARS + 1)
  assert.equal(judge(set, policyInputOf({ ...question, server: 's', tool: long })).action, 'allow')
  assert.equal(rules?.cachedPairs, before)
})
