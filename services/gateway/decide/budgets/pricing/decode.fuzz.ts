import assert from 'node:assert/strict'
import fc from 'fast-check'
import { filesNear, fuzzTarget } from '../../../../../test/fuzz/target.ts'
import { decodePricing } from './decode.ts'
import { costAtMost, costOf, outputThatFits } from './price.ts'

const names = ['input', 'output', 'cachedRead', 'cachedWrite', 'reasoning', 'perCall', 'tiers', 'aboveInputTokens', 'x']
const value = fc.oneof(
  fc.constantFrom('0', '1.25', '0.000001', '999999999', '1e3', '-1', '', '01', 5),
  fc.anything({ withNullPrototype: false, maxDepth: 1 }),
)
const tiers = fc.array(fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.nat())), { maxLength: 3 })
const model = fc.dictionary(fc.constantFrom(...names), fc.oneof({ weight: 3, arbitrary: value }, tiers), { maxKeys: 5 })
const key = fc.oneof(
  fc.constantFrom(
    'openai/*',
    'openai/gpt-5',
    'llm/r#openai/*',
    'https://x.example/#openai/*',
    'gpt',
    '__proto__',
    'a/b/*',
  ),
  fc.string({ maxLength: 12 }),
)
const file = fc.record(
  {
    version: fc.constantFrom(1, 2),
    currency: fc.constantFrom('USD', 'EUR', 'usd'),
    id: fc.string({ maxLength: 3 }),
    models: fc.dictionary(key, model, { maxKeys: 3 }),
    tools: fc.dictionary(key, model, { maxKeys: 3 }),
  },
  { requiredKeys: ['version', 'currency', 'id'] },
)
const bytes = filesNear(file)

/** Every price of an accepted table gives countable amounts. */
function tryPrices(file: Uint8Array): void {
  const decoded = decodePricing(file)
  if ('problems' in decoded) {
    assert.ok(decoded.problems.length > 0)
    return
  }
  for (const name of ['openai/gpt-5', 'openai/other', '__proto__']) {
    const price = decoded.table.model({ key: name, scopes: ['llm/r#', 'https://x.example#'] })
    if (price === null) continue
    const usage = { prompt: 1e12, completion: 1e12, cachedRead: 1e11, cachedWrite: 1e11, reasoning: 1e11 }
    for (const cost of [costOf(price, usage), costAtMost(price, 1e12, 1e12) ?? 0]) {
      assert.ok(Number.isSafeInteger(cost) && cost >= 0)
    }
    assert.ok(Number.isSafeInteger(outputThatFits(price, 1e6, 1e15)))
  }
  assert.ok(Number.isSafeInteger(decoded.table.tool('a/b/c')))
}

/** No file makes the strict decoder throw, and accepted prices can be counted. */
export const target = fuzzTarget('gateway: pricingFile', {
  'accepted prices can be counted': fc.property(bytes, tryPrices),
})
