import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callerOf, callingAgentOf, type Identity } from './facts.ts'
import { testIdentity as identity } from './testing/identity.ts'

test('callers that differ in one name have different keys, and a copy of an identity has the same key', () => {
  const others: Partial<Identity>[] = [{ tenant: 'x' }, { namespace: 'x' }, { agent: 'x' }, { session: 'x' }]
  const all = [identity, ...others.map((names) => ({ ...identity, ...names }))]
  assert.equal(new Set(all.map(callerOf)).size, all.length)
  assert.equal(new Set(all.map(callingAgentOf)).size, all.length - 1, 'sessions of one agent share its key')
  const copy = { ...identity, scopes: new Set<string>() }
  assert.deepEqual([callerOf(copy), callingAgentOf(copy)], [callerOf(identity), callingAgentOf(identity)])
})
