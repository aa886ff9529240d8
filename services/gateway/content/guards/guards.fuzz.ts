import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget } from '../../../../test/fuzz/target.ts'
import type { GuardConfig } from './config.ts'
import { published } from './testing/classifiers.ts'
import { testGuard } from './testing/config.ts'
import { textOf } from './texts.ts'
import { typeOf } from './types/types.ts'
import { windowsOf } from './windows.ts'

const json = fc.jsonValue({ maxDepth: 5 })
const config: GuardConfig = {
  ...testGuard,
  url: 'https://guard.example/guardrail/a/version/1/apply',
  maxBytes: 64,
  scorePath: 'results.0.score',
  region: 'eu-central-1',
}

/** A valid response with one member moved. */
const nearly = fc
  .tuple(fc.constantFrom(...published), fc.double({ min: 0, max: 1, noNaN: true }), json, fc.nat(8))
  .map(([one, score, odd, at]) => {
    let place = 0
    const text = JSON.stringify(one.answer(score), (_, value) => (place++ === at ? odd : value))
    return { one, answer: text === undefined ? null : JSON.parse(text) }
  })

/** Any response of a classifier or server is read without exceptions, and windows lose no text. */
export const target = fuzzTarget('gateway: guards', {
  'a response has a score or none': fc.property(nearly, fc.constantFrom('', 'attack'), ({ one, answer }, category) => {
    const guard = { ...config, type: one.type, on: [], namespaces: [], servers: [], tools: [], category }
    const score = typeOf(one.type, {}).score(answer, guard)
    assert.ok(score === null || typeof score === 'number')
  }),
  'every text of a value is in its text': fc.property(json, (value) => {
    const text = textOf(value)
    if (typeof value === 'string' && !value.startsWith('data:')) assert.equal(text, value)
    if (Array.isArray(value)) for (const one of value) assert.ok(text.includes(textOf(one).split('\n')[0] ?? ''))
  }),
  'windows hold the whole text or report that they do not': fc.property(
    fc.string({ unit: 'binary', maxLength: 400 }),
    fc.integer({ min: 1, max: 64 }),
    (source, maxBytes) => {
      const { parts, whole } = windowsOf(source, maxBytes)
      const last = parts.at(-1) ?? assert.fail()
      assert.equal(
        Buffer.from(source).subarray(-Buffer.byteLength(last)).equals(Buffer.from(last)),
        whole || source.length === 0,
      )
    },
  ),
})
