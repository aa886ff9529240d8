import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unresolved } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { compilePolicies } from './compile.ts'
import { cedarInput, inputJson } from './engines/input.ts'
import { judge } from './judge.ts'
import type { PolicyInput } from './policy-input.ts'

const inputOf = (tenant: string): PolicyInput => ({
  identity: { ...testIdentity, namespace: 'default', agent: 'assistant', tenant },
  target: { ...unresolved, kind: 'mcp', server: 'notes', tool: 'add' },
  tool: 'add',
  operation: 'mcp.call',
  method: 'tools/call',
  taints: [],
  sinks: [],
  args: null,
  now: 0,
})

test('a rule may be for the callers of one tenant, in CEL, Cedar and Rego', () => {
  const when = "identity.tenant == 'red'"
  const rules = [{ name: 'red', action: 'deny', when } as const, { name: 'all', action: 'allow' } as const]
  const policy = { name: 'default/p', namespace: 'default', agents: ['assistant'], cedar: '', rules }
  const compiled = compilePolicies({
    version: 1,
    generation: 1,
    revision: 'sha256:1',
    policies: [{ ...policy, mode: 'enforce', defaultAction: 'deny' }],
  })
  if ('problems' in compiled) return assert.fail(compiled.problems.join('\n'))
  const { set } = compiled
  const actions = ['red', 'blue', ''].map((tenant) => judge(set, inputOf(tenant)).action)
  assert.deepEqual(actions, ['deny', 'allow', 'allow'])
  assert.equal(JSON.parse(inputJson(inputOf('red'))).input.identity.tenant, 'red')
  assert.equal(JSON.parse(inputJson(inputOf(''))).input.identity.tenant, null)
  assert.equal(Object(cedarInput(inputOf('red')).context.identity).tenant, 'red')
  assert.ok(!Object.hasOwn(Object(cedarInput(inputOf('')).context.identity), 'tenant'), 'Cedar has no null')
})
