import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowList, pairs } from './allow-list.ts'

test('an owner may prove the namespaces that its entry names', () => {
  const allowed = allowList('accounts', ['1', '2=team-*'])
  assert.deepEqual([allowed('1', 'any'), allowed('2', 'team-a'), allowed('2', 'prod')], [true, true, false])
  assert.deepEqual([allowed('3', 'any'), allowed('', 'any')], [false, false])
})

test('a list that would allow all owners, or none, is refused with the name of its flag', () => {
  assert.throws(() => allowList('accounts', []), /-accounts: name at least one/)
  for (const entry of ['', '=team', '1=', '1=a=b']) assert.throws(() => allowList('accounts', [entry]), /-accounts/)
})

test('pairs name each thing once', () => {
  assert.deepEqual([...pairs('keys', ['a=x', 'b=y=z'])], Object.entries({ a: 'x', b: 'y=z' }))
  for (const entry of ['a', '=x', 'a=']) assert.throws(() => pairs('keys', [entry]), /-keys/)
  assert.throws(() => pairs('keys', ['a=x', 'a=y']), /twice/)
})
