import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../../test/fuzz/target.ts'
import { actionsIn, verdictIn } from './answer.ts'

const ACTIONS = new Set(['allow', 'deny', 'require_approval'])

const answer = fc.oneof(
  near(['{"result": {"action": "allow", "reason": "x"}}', '{"result": {"tools": {"a": true}}}', '{"result": false}']),
  fc.json().map((result) => `{"result": ${result}}`),
)

/** No bytes make the reader throw, and every accepted verdict is one of the three. */
export const target = fuzzTarget('gateway: answers of the policy engine', {
  'a verdict or none': fc.property(answer, (text) => {
    const verdict = verdictIn(Buffer.from(text))
    if (verdict === null) return
    assert.ok(ACTIONS.has(verdict.action))
    assert.ok(verdict.reason.length > 0 && verdict.reason.length <= 1024)
    // Only the word `allow` or `true` allows.
    if (verdict.action === 'allow') assert.match(text, /true|allow|\\u00/)
  }),
  'verdicts over a list or none': fc.property(answer, (text) => {
    for (const action of actionsIn(Buffer.from(text), ['a', 'b'])?.values() ?? []) assert.ok(ACTIONS.has(action))
  }),
})
