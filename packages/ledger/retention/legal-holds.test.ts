import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readHoldTarget, textOfTarget } from './legal-holds.ts'

test('a target of a hold may name its scope, as that of a revocation does', () => {
  const agent = { agent: 'default/assistant' }
  const session = { session: 'default/assistant/run-7' }
  for (const text of ['agent:default/assistant', 'agent:assistant', 'default/assistant'])
    assert.deepEqual(readHoldTarget(text), agent, text)
  for (const text of ['session:default/assistant/run-7', 'default/assistant/run-7'])
    assert.deepEqual(readHoldTarget(text), session, text)
  for (const target of [agent, session]) assert.deepEqual(readHoldTarget(textOfTarget(target)), target)
  for (const text of ['assistant', 'agent:a/b/c', 'session:a/b', 'agent:', 'user:a/b', 'agent:agent:a', 'agent:a/b\n'])
    assert.equal(readHoldTarget(text), null, text)
})
