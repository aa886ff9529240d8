import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseChecked, parseLossless, parseStrict, parseStrictLossless } from '../index.ts'

/** Own JSON with the names of `prime` first: what an engine learns from one message, it applies to the next. */
function primed(prime: string, text: string): string {
  JSON.parse(prime)
  JSON.parse(prime)
  return text
}

const own = (value: unknown) => JSON.stringify(value)

test('an escaped name is read as its receiver reads it, whatever names earlier messages had', () => {
  for (const [prime, text, expected] of [
    ['{"p1":1,"\\\\":1}', '{"p1":1,"\\u0062":2}', '{"p1":1,"b":2}'],
    ['{"p2":1,"\\\\u006":1}', '{"p2":1,"\\u0066orce":true}', '{"p2":1,"force":true}'],
    ['{"p3":1,"\\\\\\\\":1}', '{"p3":1,"\\\\x":2}', '{"p3":1,"\\\\x":2}'],
    ['{"p6":1,"\\u005c":1}', '{"p6":1,"\\u005cu0062":2}', '{"p6":1,"\\\\u0062":2}'],
    ['{"p4":1,"\\\\":1}', '{"p4":1,"\\n":[{"\\"":1}]}', '{"p4":1,"\\n":[{"\\"":1}]}'],
    [
      '[{"p5":1,"\\\\":1}]',
      '[{"p5":1,"\\u0062":1,"\\\\":1},{"p5":1,"\\\\":1}]',
      '[{"p5":1,"b":1,"\\\\":1},{"p5":1,"\\\\":1}]',
    ],
  ] as const) {
    for (let round = 0; round < 3; round++) {
      assert.equal(own(parseStrict(primed(prime, text))), expected)
      assert.equal(own(parseStrict(Buffer.from(text))), expected)
      assert.equal(own(parseChecked(text)), expected)
      assert.equal(own(parseChecked(text, (_name, value) => value)), expected)
      assert.equal(own(parseLossless(text)), expected)
      assert.equal(own(parseStrictLossless(Buffer.from(text))), expected)
    }
  }
})

test('a misread text that is long is refused, and any other with escaped names is read', () => {
  const long = (name: string) => `{"q1":1,"${name}":["${'x'.repeat(70_000)}"]}`
  primed('{"q1":1,"\\\\":1}', '')
  assert.throws(() => parseStrict(long('\\u0062')), /a long text with member names whose escapes cannot be read/)
  assert.throws(() => parseChecked(long('\\u0062')), SyntaxError)
  for (const name of ['C:\\\\x', 'pr\\u00e9nom', '\\u0062', 'a\\u005cbcd', 'ab\\u005C\\n\\\\u0063'])
    assert.equal(
      own(parseStrict(long(name).replace('q1', `q${name.length}`))),
      own(JSON.parse(long(name).replace('q1', `q${name.length}`))),
    )
})

test('values that are read one by one are those of JSON.parse, with its reviver', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(0, 2), (text, indent) => {
      // Its first name has an escape, and none that the engine knows.
      const spaced = `{"\\u0061":${JSON.stringify(JSON.parse(text), null, indent)}}`
      const sources: unknown[] = []
      const expected: unknown[] = []
      const value = parseChecked(spaced, (_name, each, { source }) => {
        sources.push(source)
        return each
      })
      JSON.parse(JSON.stringify({ a: JSON.parse(text) }), (_name, each, { source }) => {
        expected.push(source)
        return each
      })
      assert.equal(own(value), own({ a: JSON.parse(text) }))
      assert.equal(sources.length, expected.length)
    }),
  )
})
