import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countMembers, countValues } from './count.ts'

test('values and names of members are counted, and what texts hold is not', () => {
  const count = (text: string, most = 1000) => countValues(Buffer.from(text), most)
  assert.equal(count('1'), 1)
  assert.equal(count('[1,2,3]'), 4)
  assert.equal(count('{"a":1,"b":[2]}'), 6)
  assert.equal(count('"[,,,{{:"'), 1)
  assert.equal(count('["\\",[,",1]'), 3)
  assert.equal(count(`["${'\\\\'.repeat(100)}",1]`), 3)
  // An empty container may count as one value more than it has.
  assert.ok(count('[[],{}]') >= 3)
})

test('counting ends as soon as there are more values than allowed', () => {
  assert.equal(countValues(Buffer.from(`[${'1,'.repeat(100)}1]`), 10), 11)
})

test('members of all objects are counted, also where a name looks like an index or a prototype', () => {
  const count = (text: string) => countMembers(JSON.parse(text))
  for (const text of ['1', 'null', '"a"', '[]', '[null,[1]]', '{}']) assert.equal(count(text), 0, text)
  assert.equal(count('{"__proto__":{"a":1},"1":[{"b":null},{}],"01":"c"}'), 5)
})
