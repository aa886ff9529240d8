import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { runOf, usageOfBody } from './frame.ts'

/** What makes events, and what an event must not hold to be taken unseen; broken and doubled where one runs into the next. */
const PIECES = [
  ...['data: {"choices":[{"delta":{"content":"ab"}}]}', 'data: {}', 'id: 1', '"usage":null', '"usage": null'],
  ...['"usage":', '"usage":nul', '"usage"', '"error"', '"error', '\\"error"', '[DONE]', '[DON', '[', '"', ':'],
  ...['\r', '\n:', '\n', '\n\n', '\n\n\n', ' ', 'x'],
]

/** The same said by searches: the bytes of events before the first that has to be looked at, and of each. */
function plainly(text: string): { raw: string; sizes: number[] } | null {
  const looked = text.search(/(?<=^|\n):|\r|\[DONE\]|"error"|"usage"(?!: ?null)/)
  let raw = ''
  const sizes: number[] = []
  for (const event of text.match(/[\s\S]*?\n\n/g) ?? []) {
    if (looked !== -1 && raw.length + event.length > looked) break
    raw += event
    sizes.push(event.length)
  }
  return sizes.length === 0 ? null : { raw, sizes }
}

test('events are taken together up to the first that a search says has to be looked at', () => {
  const text = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))
  let runs = 0
  fc.assert(
    fc.property(text, fc.boolean(), (pieces, whole) => {
      const events = whole ? `${pieces}\n\n` : pieces
      const run = runOf(Buffer.from(events))
      const expected = plainly(events)
      assert.equal(run === null, expected === null)
      if (run === null || expected === null) return
      runs++
      assert.equal(Buffer.from(run.raw).toString(), expected.raw)
      assert.deepEqual([run.count, run.shortest], [expected.sizes.length, Math.min(...expected.sizes)])
    }),
    { numRuns: 5000 },
  )
  assert.ok(runs > 200, `only ${runs} were runs`)
})

test('the usage of an answer is what parsing all of it finds, wherever and however often it is named', () => {
  const names = ['usage', '"usage', 'us\\u0061ge', 'id', 'choices', 'usage"', '\\"usage']
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('1', 'null', '"usage"', '"\\"usage\\":{}"'),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('any'), { maxLength: 2 }).map((all) => `[${all.join(',')}]`),
    object: fc
      .array(fc.tuple(fc.constantFrom(...names), tie('any'), fc.constantFrom('', ' ')), { maxLength: 3 })
      .map((all) => `{${all.map(([name, one, space]) => `${space}"${escaped(name)}"${space}:${one}`).join(',')}}`),
  }))
  let found = 0
  fc.assert(
    fc.property(fc.oneof(value.object, value.any), fc.constantFrom('', '\n'), (json, end) => {
      const text = `${json}${end}`
      const whole: unknown = JSON.parse(text)
      const isNamed = typeof whole === 'object' && whole !== null && 'usage' in whole && text.includes('"usage"')
      if (isNamed) found++
      assert.deepEqual(usageOfBody(Buffer.from(text)), isNamed ? whole.usage : undefined, text)
    }),
    { numRuns: 5000 },
  )
  assert.ok(found > 200, `only ${found} had usage`)
})

/** Quotes escaped; what is escaped already stays. */
function escaped(name: string): string {
  return name.replace(/(?<!\\)"/g, '\\"')
}
