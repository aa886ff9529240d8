import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withoutComments } from './jsonc.ts'

test('comments and trailing commas become spaces, strings and lines stay', () => {
  const text = '{ // a\n\t"b//": "/* c */ ,]", /* d\n e */ "f": [1, 2, ], // g\n}'
  const plain = withoutComments(text)
  assert.deepEqual(JSON.parse(plain), { 'b//': '/* c */ ,]', f: [1, 2] })
  assert.deepEqual([plain.length, plain.split('\n').length], [text.length, text.split('\n').length])
  for (const broken of ['"a', '/*', '//', '"\\', ',', '{"a": 1,, }'])
    assert.equal(withoutComments(broken).length, broken.length)
  assert.throws(() => JSON.parse(withoutComments('{"a": 1,, }')))
})

test('JSON without comments reads as before', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(withoutComments(JSON.stringify(value, null, 1))), JSON.parse(JSON.stringify(value)))
    }),
  )
})
