import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endsCall, recorded } from './recorded.ts'

const facts = {
  tier: 'tier-1',
  groups: ['g'],
  scopes: ['tools:notes'],
  taints: ['web'],
  chain: [],
  dataClass: 'public',
  trust: 'trusted',
}
const outcome = {
  kind: 'outcome',
  at: '2026-11-20T11:00:00.000000Z',
  namespace: 'default',
  agent: 'assistant',
  session: 's',
  op: 'mcp.call',
  server: 'notes',
  tool: 'add',
  method: 'tools/call',
  action: 'allow',
  policy: 'default/p',
  rule: 'r',
  facts,
}
const of = (more: object) =>
  recorded({ ...outcome, ...more }, (_, server, tool) => ({ sinks: [`${server}/${tool}`], alias: null }))

test('a record restores the policy input', () => {
  const input = of({ argsSha256: 'ab', user: 'ada' })?.input
  const { identity, target, taints, sinks, args, tool, now } = input ?? assert.fail()
  assert.deepEqual([identity.user, identity.tier, identity.groups], ['ada', 'tier-1', ['g']])
  assert.ok(identity.scopes.has('tools:notes'))
  assert.deepEqual(
    [target.kind, target.server, tool, target.dataClass, target.trust],
    ['mcp', 'notes', 'add', 'public', 'trusted'],
  )
  assert.deepEqual([taints, sinks, args], [['web'], ['notes/add'], 'unknown'])
  assert.equal(new Date(now).toISOString(), '2026-11-20T11:00:00.000Z')
  assert.equal(of({})?.input.args, null)
})

test('a route is a model, a resource is not a tool, and a message without a skill names none', () => {
  const model = of({ op: 'model.generate', server: 'llm/small', tool: 'gpt' })?.input
  assert.deepEqual([model?.target.kind, model?.target.key, model?.tool, model?.sinks], ['model', 'small', 'gpt', []])
  assert.equal(of({ op: 'mcp.get', tool: 'file:///a' })?.input.tool, null)
  assert.equal(of({ op: 'a2a.send', server: 'a2a/ns/b', tool: 'message' })?.input.tool, null)
  assert.equal(of({ op: 'a2a.send', server: 'a2a/ns/b', tool: 'skill:x' })?.input.tool, 'skill:x')
})

test('verdicts of policies are distinguished from later refusals', () => {
  const was = (more: object) => of(more)?.was.action ?? null
  const denied = (code: string, more: object = {}) => was({ kind: 'decision', action: 'deny', code, ...more })
  assert.equal(was({}), 'allow')
  assert.equal(was({ action: 'require_approval' }), 'require_approval')
  assert.equal(denied('policy_denied'), 'deny')
  assert.equal(denied('policy_denied', { policy: undefined }), 'deny', 'an agent without a policy')
  assert.equal(denied('tainted_sink'), 'deny')
  assert.equal(denied('approval_expired'), 'require_approval')
  assert.equal(denied('budget_exceeded'), 'allow')
  assert.equal(denied('unknown_server', { policy: undefined }), null)
  assert.equal(was({ policy: undefined, reason: 'scope' }), null)
  const engines = [
    { name: 'native', action: 'allow' },
    { name: 'rego', action: 'deny' },
  ]
  assert.equal(denied('policy_denied', { engines }), 'allow', 'the external engine gets no request')
})

test('intents, lists, answers, sandboxes and operations of later versions are not judged', () => {
  assert.equal(endsCall({ ...outcome, kind: 'intent' }), false)
  assert.equal(endsCall({ ...outcome, op: 'usage.sandbox' }), false)
  assert.equal(endsCall(outcome), true)
  for (const op of ['mcp.list', 'mcp.answer', 'later.op', undefined]) assert.equal(of({ op }), null, String(op))
})
