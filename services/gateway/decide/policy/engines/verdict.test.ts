import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actionsIn, verdictIn } from './answer.ts'

const bytes = (text: string) => Buffer.from(text)
const verdict = (result: string) => verdictIn(bytes(`{"result": ${result}}`))
const NAMES = ['a', 'b', 'c', 'd', '__proto__', 'toString']
const listed = (result: string) => actionsIn(bytes(`{"result": ${result}}`), NAMES)

test('a boolean, an action and an object with either are verdicts', () => {
  const actions: readonly (readonly [string, string])[] = [
    ['true', 'allow'],
    ['false', 'deny'],
    ['"allow"', 'allow'],
    ['"require_approval"', 'require_approval'],
    ['"deny"', 'deny'],
    ['{"action": true}', 'allow'],
    ['{"action": "deny", "reason": "closed on Sundays", "allow": true}', 'deny'],
  ]
  for (const [result, action] of actions) assert.equal(verdict(result)?.action, action, result)
  assert.equal(verdict('{"action": "deny", "reason": "closed on Sundays"}')?.reason, 'closed on Sundays')
  assert.equal(verdict('"deny"')?.reason, 'the policy engine says deny')
})

test('an undefined result denies: no default was written in the policy', () => {
  for (const answer of ['{}', '{"decision_id": "x"}', '{"result": null}']) {
    assert.deepEqual(verdictIn(bytes(answer))?.action, 'deny', answer)
  }
})

test('a response that is not a verdict counts as no verdict', () => {
  const wrong = [
    '1',
    '"ALLOW"',
    '"yes"',
    '[]',
    '[true]',
    '{}',
    '{"action": 1}',
    '{"allow": true}',
    '{"action": {"action": "allow"}}',
  ]
  for (const result of wrong) assert.equal(verdict(result), null, result)
  const broken = [
    '',
    'true',
    '"allow"',
    '[]',
    '{"result": true',
    '{"result": true, "result": false}',
    '{"result": true} x',
  ]
  for (const answer of broken) assert.equal(verdictIn(bytes(answer)), null, answer)
  assert.equal(verdictIn(Buffer.from([0x7b, 0xff, 0x7d])), null)
})

test('a reason is one line of at most 1,024 characters', () => {
  assert.equal(verdict('{"action": "deny", "reason": " a\\n\\u0000b\\u2028c "}')?.reason, 'a b c')
  assert.equal(verdict(`{"action": "deny", "reason": "${'x'.repeat(2000)}"}`)?.reason.length, 1024)
  const cut = verdict(`{"action": "deny", "reason": "${'x'.repeat(1023)}\u{1f600}"}`)?.reason
  assert.ok(cut?.length === 1024 && cut.isWellFormed())
  assert.equal(verdict('{"action": "deny", "reason": {"a": 1}}')?.reason, 'the policy engine says deny')
})

test('a list is answered tool by tool; a tool without a verdict has none', () => {
  const all = listed(
    '{"tools": {"a": true, "b": {"action": "require_approval"}, "c": "deny", "d": 1, "__proto__": "allow", "other": true}}',
  )
  assert.deepEqual([...(all ?? [])].toSorted(), [
    ['__proto__', 'allow'],
    ['a', 'allow'],
    ['b', 'require_approval'],
    ['c', 'deny'],
  ])
  assert.deepEqual(listed('null'), new Map())
  for (const wrong of ['true', '"allow"', '{"action": "allow"}', '{"tools": ["a"]}', '{"tools": true}']) {
    assert.equal(listed(wrong), null, wrong)
  }
  assert.equal(actionsIn(bytes('{"result"'), NAMES), null)
})

test('the actions of an answer with many tools are those of the list alone', () => {
  const many = Array.from({ length: 50_000 }, (_, at) => `"t${at}": true`).join(', ')
  assert.deepEqual(listed(`{"tools": {${many}, "a": false}}`), new Map([['a', 'deny']]))
})
