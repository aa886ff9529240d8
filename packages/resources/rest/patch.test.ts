import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RestError } from './error.ts'
import { jsonPatch } from './patch.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
const repeated = (count: number, operation: object) => numbers(count).map(() => operation)

/** Returns the error of a refused patch. */
function refusal(target: unknown, patch: readonly object[]): string {
  try {
    jsonPatch(target, patch)
  } catch (error) {
    if (error instanceof RestError) return `${error.status} ${error.message}`
    throw error
  }
  return 'accepted'
}

test('elements of lists are added, removed, replaced and moved', () => {
  const patch = [
    { op: 'add', path: '/a/0', value: 0 },
    { op: 'remove', path: '/a/1' },
    { op: 'replace', path: '/a/1', value: [1] },
    { op: 'move', from: '/a/0', path: '/a/-' },
    { op: 'test', path: '/a', value: [[1], 3, 0] },
  ]
  assert.deepEqual(jsonPatch({ a: [1, 2, 3] }, patch), { a: [[1], 3, 0] })
})

test('a replacement requires an existing target', () => {
  assert.deepEqual(jsonPatch({ a: 1 }, [{ op: 'replace', path: '', value: 2 }]), 2)
  assert.match(refusal({}, [{ op: 'replace', path: '/a', value: 1 }]), /^422 .*there is no "a"/)
  assert.match(refusal({ a: [1] }, [{ op: 'replace', path: '/a/1', value: 1 }]), /^422 .*"1" is not a place/)
  assert.match(refusal({ a: [1] }, [{ op: 'replace', path: '/a/-', value: 1 }]), /^422 .*"-" is not a place/)
  const named = jsonPatch(JSON.parse('{"__proto__":1}'), [{ op: 'replace', path: '/__proto__', value: 2 }])
  assert.equal(JSON.stringify(named), '{"__proto__":2}')
})

test('operations that together move too many elements are refused, others are not', () => {
  const remove = { op: 'remove', path: '/a/0' }
  assert.equal(refusal({ a: numbers(500) }, repeated(500, remove)), 'accepted')
  assert.equal(refusal({ a: numbers(100_000) }, repeated(40, remove)), 'accepted')
  // An operation that moves no element costs nothing, in a list of any length.
  assert.equal(refusal({ a: numbers(100_000) }, repeated(9000, { op: 'add', path: '/a/-', value: 1 })), 'accepted')
  assert.equal(refusal({ a: numbers(100_000) }, repeated(9000, { op: 'replace', path: '/a/0', value: 1 })), 'accepted')

  const tooMany = /^413 operation \d+: the operations together move or compare too many elements/
  for (const operation of [
    remove,
    { op: 'add', path: '/a/0', value: 1 },
    { op: 'move', from: '/a/0', path: '/a/-' },
    { op: 'move', from: '/a/99999', path: '/a/0' },
    { op: 'copy', from: '/a/0', path: '/a/0' },
  ])
    assert.match(refusal({ a: numbers(100_000) }, repeated(100, operation)), tooMany)
  const members = Object.fromEntries(numbers(5000).map((at) => [`m${at}`, at]))
  assert.equal(refusal({ a: members }, repeated(20, { op: 'test', path: '/a', value: members })), 'accepted')
  assert.match(refusal({ a: members }, repeated(100, { op: 'test', path: '/a', value: members })), tooMany)
})

test('names in pointers are unescaped in one pass', () => {
  const names = {
    '~1': '/',
    '~0': '~',
    '~01': '~1',
    '~00': '~0',
    '~~1': '~/',
    '~10': '/0',
    '~': '~',
    '~2': '~2',
    'é~1\u{1f600}~0': 'é/\u{1f600}~',
  }
  for (const [written, name] of Object.entries(names))
    assert.deepEqual(jsonPatch({}, [{ op: 'add', path: `/${written}`, value: 1 }]), { [name]: 1 }, written)
  // Code units that resemble those of an escape, and lone surrogates.
  for (const name of ['\u007e\u0131', '\u7e00\u3100', '\u317e', '~\ud800', '\ud800~'])
    assert.deepEqual(jsonPatch({}, [{ op: 'add', path: `/${name}`, value: 1 }]), { [name]: 1 })
})
