import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { PolicyFile } from '@plat/resources/rendered'
import { type Call, isDenial, Snapshots } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { admitted } from '../../pipeline/stage.ts'
import { compilePolicies } from './compile.ts'
import { createPolicyStage, policySlot } from './stage.ts'

const clock = new TestClock()

function policies(action: 'allow' | 'deny' | 'require_approval') {
  const rules: PolicyFile['policies'][number]['rules'] = [{ name: 'r', action, when: "args.name == 'x'" }]
  const policy = { name: 'default/p', namespace: 'default', agents: ['a'], cedar: '', rules }
  const compiled = compilePolicies({
    version: 1,
    generation: 1,
    revision: `sha256:${action}`,
    policies: [{ ...policy, mode: 'enforce', defaultAction: 'deny' }],
  })
  if ('problems' in compiled) assert.fail(compiled.problems.join())
  return compiled.set
}

function callIn(snapshots: Snapshots): Call<'identity' | 'target' | 'taints'> {
  const bytes = Buffer.from('{"name":"x"}')
  return testCall(
    { identity: { ...testIdentity, expiresAt: clock.now() }, target: testTarget, taints: { labels: [] } },
    { receivedAt: clock.now(), snapshot: snapshots.current, body: { bytes, value: null, args: bytes } },
  )
}

async function verdict(action: 'allow' | 'deny' | 'require_approval') {
  const snapshots = new Snapshots()
  snapshots.publish(policySlot, policies(action))
  const answer = await createPolicyStage({ snapshots, clock }).admit(callIn(snapshots))
  assert.notEqual(answer, admitted)
  return answer
}

test('an allowed call gets its decision as a fact', async () => {
  const answer = await verdict('allow')
  assert.ok(typeof answer === 'object' && 'decision' in answer)
  assert.deepEqual([answer.decision.rule, answer.decision.revision], ['r', 'sha256:allow'])
})

test('a denied call is refused with policy and rule', async () => {
  const answer = await verdict('deny')
  assert.ok(isDenial(answer))
  assert.deepEqual([answer.code, answer.policy, answer.rule], ['policy_denied', 'default/p', 'r'])
})

test('a call that needs an approval goes on as such, bound to the text of the rule', async () => {
  const answer = await verdict('require_approval')
  assert.ok(typeof answer === 'object' && 'decision' in answer)
  assert.equal(answer.decision.action, 'require_approval')
  assert.match(answer.decision.ruleSha256 ?? '', /^[0-9a-f]{64}$/)
})

test('every call is denied before a file was loaded', async () => {
  const snapshots = new Snapshots()
  assert.ok(isDenial(await createPolicyStage({ snapshots, clock }).admit(callIn(snapshots))))
})

test('a long call is judged again by policies that came after it began', () => {
  const snapshots = new Snapshots()
  snapshots.publish(policySlot, policies('allow'))
  const stage = createPolicyStage({ snapshots, clock })
  const call = callIn(snapshots)
  const decided = { ...call, facts: { ...call.facts, decision: stage.skipped.decision } }
  assert.equal(stage.still?.(decided), null)
  snapshots.publish(policySlot, policies('allow'))
  assert.equal(stage.still?.(decided), null)
  snapshots.publish(policySlot, policies('deny'))
  assert.equal(stage.still?.(decided)?.code, 'policy_denied')
})

test('a call that passed without an approval ends when it would need one; an approved call continues', () => {
  const snapshots = new Snapshots()
  snapshots.publish(policySlot, policies('allow'))
  const stage = createPolicyStage({ snapshots, clock })
  const call = callIn(snapshots)
  const decided = (action: 'allow' | 'require_approval') => {
    const decision = { ...stage.skipped.decision, action }
    return stage.still?.({ ...call, facts: { ...call.facts, decision } })
  }
  snapshots.publish(policySlot, policies('require_approval'))
  assert.equal(decided('allow')?.code, 'policy_denied')
  assert.equal(decided('require_approval'), null)
})

test('an answer to a server is judged as the call that it belongs to, whose arguments are gone and whose approval counts', () => {
  const snapshots = new Snapshots()
  const stage = createPolicyStage({ snapshots, clock })
  const judged = (action: 'allow' | 'deny' | 'require_approval', parentOperation: 'mcp.call' | 'mcp.listen') => {
    snapshots.publish(policySlot, policies(action))
    const answer: Call<'identity' | 'target' | 'taints'> = {
      ...callIn(snapshots),
      operation: 'mcp.answer',
      parentOperation,
    }
    const verdict = stage.admit(answer)
    assert.ok(typeof verdict === 'object' && !(verdict instanceof Promise) && !('until' in verdict))
    return isDenial(verdict) ? 'denied' : 'decision' in verdict ? verdict.decision : null
  }
  for (const action of ['allow', 'require_approval'] as const) {
    const decision = judged(action, 'mcp.call')
    assert.ok(typeof decision === 'object' && decision !== null)
    assert.deepEqual([decision.action, decision.rule], ['allow', 'r'])
  }
  // The deny rule reads arguments, which are no longer known, so the default applies.
  assert.equal(judged('deny', 'mcp.call'), 'denied')
  const listened = judged('deny', 'mcp.listen')
  assert.ok(typeof listened === 'object' && listened !== null)
  assert.equal(listened.reason, 'scope')
})

test('an answer ends with the policies that deny its call, not with those that require an approval', () => {
  const snapshots = new Snapshots()
  snapshots.publish(policySlot, policies('allow'))
  const stage = createPolicyStage({ snapshots, clock })
  const call = { ...callIn(snapshots), operation: 'mcp.answer', parentOperation: 'mcp.call' } as const
  const answer = { ...call, facts: { ...call.facts, decision: stage.skipped.decision } }
  snapshots.publish(policySlot, policies('require_approval'))
  assert.equal(stage.still?.(answer), null)
  snapshots.publish(policySlot, policies('deny'))
  assert.equal(stage.still?.(answer)?.code, 'policy_denied')
  assert.equal(stage.still?.({ ...answer, parentOperation: 'mcp.listen' }), null)
})
