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

test('a session has any name that its token can state', () => {
  for (const name of ['Run_7', '_run', 'a..b', '1..2', 'x'.repeat(300)]) {
    const session = `shop/Agent/${name}`
    assert.deepEqual(readHoldTarget(session), { session })
    assert.deepEqual(readHoldTarget(textOfTarget({ session })), { session })
  }
  for (const text of ['shop/a/..', 'shop/a/.', 'shop//a', 'shop/a/b c']) assert.equal(readHoldTarget(text), null, text)
})
