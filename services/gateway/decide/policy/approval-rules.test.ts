import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RuleEntry } from '@plat/resources/rendered'
import { testIdentity } from '../../call/testing/identity.ts'
import { rulesWithApproval } from './approval-rules.ts'
import { compilePolicies } from './compile.ts'
import type { PolicyInput } from './policy-input.ts'

const ask = (name: string, more: Partial<RuleEntry> = {}): RuleEntry => ({ name, action: 'require_approval', ...more })

function asking(rules: readonly RuleEntry[], args = '{"n":1}'): string[] {
  const policy = { name: 'default/p', namespace: 'default', mode: 'enforce', cedar: '', defaultAction: 'deny' } as const
  const compiled = compilePolicies({
    version: 1,
    generation: 1,
    revision: 'sha256:r',
    policies: [
      { ...policy, agents: ['a'], rules: [...rules] },
      { ...policy, name: 'default/tried', agents: ['a'], mode: 'dryRun', rules: [ask('tried')] },
    ],
  })
  assert.ok('set' in compiled)
  return rulesWithApproval(compiled.set, { ...input, args: Buffer.from(args) }).map(
    ({ policy: of, rule, quorum }) => `${of}/${rule} ${quorum?.minApprovers ?? '-'}`,
  )
}

const input: PolicyInput = {
  identity: testIdentity,
  target: {
    kind: 'mcp',
    key: 'default/notes',
    server: 'notes',
    tool: 'wipe',
    trust: 'trusted',
    dataClass: 'internal',
    jurisdiction: null,
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  },
  tool: 'wipe',
  operation: 'mcp.call',
  method: 'tools/call',
  taints: [],
  sinks: [],
  args: null,
  now: 0,
}

test('every matching approval rule is returned, in any order, also beside one that matches everything', () => {
  const strict = ask('strict', { match: { tools: ['wipe'] }, quorum: { minApprovers: 2 } })
  const loose = ask('loose')
  const allowed: RuleEntry = { name: 'ok', action: 'allow' }
  for (const rules of [
    [loose, strict, allowed],
    [allowed, strict, loose],
  ]) {
    assert.deepEqual(asking(rules).toSorted(), ['default/p/loose -', 'default/p/strict 2'])
  }
})

test('a rule that does not match is left out; one whose expression fails is returned', () => {
  const rules = [
    ask('other', { match: { tools: ['read'] } }),
    ask('small', { when: 'args.n < 1' }),
    ask('large', { when: 'args.n >= 1' }),
    ask('broken', { when: 'args.missing == 1' }),
  ]
  assert.deepEqual(asking(rules), ['default/p/large -', 'default/p/broken -'])
})
