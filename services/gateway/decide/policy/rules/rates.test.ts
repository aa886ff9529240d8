import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuleEntry } from '@plat/resources/rendered'
import type { Identity, Target } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { compilePolicies } from '../compile.ts'
import { judge } from '../judge.ts'
import { policyInputOfTool } from '../policy-input.ts'
import { rateOf } from './rates.ts'

type RateLimit = NonNullable<RuleEntry['rateLimit']>

const NOW = Date.UTC(2026, 0, 1, 0, 0, 30)

const identity: Identity = {
  ...testIdentity,
  agent: 'assistant',
  session: 's1',
  user: 'ada',
  expiresAt: NOW,
}

const target: Target = {
  kind: 'mcp',
  key: 'default/notes',
  server: 'notes',
  tool: 'add_note',
  trust: 'untrusted',
  dataClass: 'internal',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
}

function ask(rules: RuleEntry[], who: Partial<Identity> = {}) {
  const policy = { name: 'default/p', namespace: 'default', agents: ['assistant'], cedar: '', rules }
  const compiled = compilePolicies({
    version: 1,
    generation: 1,
    revision: 'sha256:0',
    policies: [{ ...policy, mode: 'enforce', defaultAction: 'deny' }],
  })
  if ('problems' in compiled) assert.fail(compiled.problems.join())
  return judge(compiled.set, {
    identity: { ...identity, ...who },
    target,
    tool: target.tool,
    operation: 'mcp.call',
    method: 'tools/call',
    taints: [],
    sinks: [],
    args: Buffer.from('{"n":5}'),
    now: NOW,
  })
}

const rate = (name: string, more: Partial<RuleEntry> = {}): RuleEntry => ({
  name,
  action: 'allow',
  rateLimit: { count: 10, seconds: 60, per: 'session' },
  ...more,
})

test('the rate limits of all rules that match are named, whichever rule decides', () => {
  const never = rate('never', { when: 'args.n > 5' })
  const other = rate('other', { match: { tools: ['delete_note'] } })
  const hold: RuleEntry = { name: 'hold', action: 'require_approval' }
  const decision = ask([rate('first'), rate('second', { when: 'args.n == 5' }), never, other, hold])
  assert.deepEqual([decision.action, decision.rule], ['require_approval', 'hold'])
  assert.deepEqual(
    decision.rates.map(({ key, cap, amount, unit }) => [key, cap, amount, unit]),
    [
      ['rate/default/p/first/default/assistant/s1', 10, 1, 'calls'],
      ['rate/default/p/second/default/assistant/s1', 10, 1, 'calls'],
    ],
  )
})

test('a denied call names no rates, and a rule without a limit names none', () => {
  assert.deepEqual(ask([rate('r'), { name: 'no', action: 'deny' }]).rates, [])
  assert.deepEqual(ask([{ name: 'all', action: 'allow' }]).rates, [])
})

test('calls are counted by session, agent, user or namespace', () => {
  const subject = (per: RateLimit['per'], who: Partial<Identity> = {}) =>
    ask([rate('r', { rateLimit: { count: 1, seconds: 60, per } })], who).rates[0]?.key.slice('rate/default/p/r/'.length)
  assert.equal(subject('session'), 'default/assistant/s1')
  assert.equal(subject('agent'), 'default/assistant')
  assert.equal(subject('user'), 'ada')
  assert.equal(subject('namespace'), 'default')
  assert.equal(subject('user', { user: null }), '')
})

test('a window of a minute is an epoch minute, any other says where it starts and how long it is', () => {
  const window = (seconds: number) =>
    ask([rate('r', { rateLimit: { count: 1, seconds, per: 'agent' } })]).rates[0]?.window
  assert.equal(window(60), String(Date.UTC(2026, 0, 1) / 60_000))
  assert.equal(window(20), `${Date.UTC(2026, 0, 1, 0, 0, 20) / 1000}+20`)
})

test('the rate item of a call depends only on its subject and time', () => {
  const take = rateOf({ count: 10, seconds: 60, per: 'user' }, { policy: 'default/p', rule: 'r' })
  const at = (user: string, now: number) => {
    const [item] = take(policyInputOfTool({ identity: { ...identity, user }, target, taints: [], sinks: [] }, 't', now))
    const { key, window } = item ?? assert.fail('no item')
    return [key, Number(window) * 60_000 - Date.UTC(2026, 0, 1)]
  }
  const ada = 'rate/default/p/r/ada'
  assert.deepEqual(at('ada', NOW), [ada, 0])
  assert.deepEqual(at('ada', NOW + 29_999), [ada, 0])
  assert.deepEqual(at('ada', NOW + 30_000), [ada, 60_000])
  assert.deepEqual(at('bob', NOW + 30_000), ['rate/default/p/r/bob', 60_000])
  assert.deepEqual(at('ada', NOW), [ada, 0])
})

test('calls are counted by each group and by model, and exceptions have their own count', () => {
  const except = [{ names: ['team-b', 'big-*'], count: 50 }]
  const counts = (per: RateLimit['per'], who: Partial<Identity> = {}) =>
    ask([rate('r', { rateLimit: { count: 1, seconds: 60, per, except } })], who).rates.map(({ key, cap, limit }) => [
      key.slice(key.lastIndexOf('/') + 1),
      cap,
      limit?.replace(/ \(rule .*/, ''),
    ])
  assert.deepEqual(counts('group', { groups: ['team-a', 'team-b'] }), [
    ['team-a', 1, 'the limit of 1 calls in 60 s of group team-a'],
    ['team-b', 50, 'the limit of 50 calls in 60 s of group team-b'],
  ])
  assert.deepEqual(counts('group', { groups: [] })[0]?.slice(1), [
    1,
    'the limit of 1 calls in 60 s of calls without a group',
  ])
  const models = rateOf({ count: 1, seconds: 60, per: 'model', except }, { policy: 'default/p', rule: 'r' })
  const modelTarget = { ...target, kind: 'model', server: 'llm/small', key: 'small' } as const
  const counted = (kind: Target, tool: string) =>
    models(policyInputOfTool({ identity, target: kind, taints: [], sinks: [] }, tool, NOW)).map(({ key, cap }) => [
      key,
      cap,
    ])
  assert.deepEqual(counted(modelTarget, 'big-1'), [['rate/default/p/r/big-1', 50]])
  assert.deepEqual(counted(modelTarget, 'small-1'), [['rate/default/p/r/small-1', 1]])
  assert.deepEqual(counted(target, 'big-1'), [['rate/default/p/r/', 1]])
})
