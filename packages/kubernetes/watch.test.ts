import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_LINE_BYTES, WatchLines } from './watch.ts'

test('lines do not depend on chunking', () => {
  const plain = { noNullPrototype: true } as const
  const object = fc.record({ a: fc.string() }, plain)
  const line = fc.record({ type: fc.constantFrom('ADDED', 'BOOKMARK'), object }, plain)
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(400), { maxLength: 12 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((one) => `${JSON.stringify(one)}\n`).join(''))
      const reader = new WatchLines()
      const read: unknown[] = []
      let from = 0
      for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
        read.push(...reader.push(bytes.subarray(from, Math.max(from, cut))))
        from = Math.max(from, cut)
      }
      assert.deepEqual(read, lines)
    }),
  )
})

test('malformed and overlong lines are refused, and empty lines ignored', () => {
  const push = (text: string) => new WatchLines().push(Buffer.from(text))
  assert.deepEqual(push('\n\n'), [])
  for (const text of [
    '1\n',
    '{}\n',
    '{"type":"ADDED"}\n',
    '{"type":1,"object":{}}\n',
    '{"type":"A","object":[]}\n',
    'x\n',
  ]) {
    assert.throws(() => push(text), Error, text)
  }
  assert.throws(() => push('x'.repeat(MAX_LINE_BYTES + 1)), /longer than 4194304 bytes/)
})
