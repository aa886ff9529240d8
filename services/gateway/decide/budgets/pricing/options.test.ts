import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePricing } from './decode.ts'
import { costAtMost, costOf } from './price.ts'

const PLAIN = { input: '5', output: '25', cachedRead: '0.5', cachedWrite: '6.25' }

function tableOf(model: object) {
  const file = { version: 1, currency: 'USD', id: 't', models: { 'anthropic/m': model } }
  return decodePricing(Buffer.from(JSON.stringify(file)))
}

function priceOf(model: object, options: readonly string[]) {
  const decoded = tableOf(model)
  return 'problems' in decoded
    ? assert.fail(decoded.problems.join())
    : decoded.table.model({ key: 'anthropic/m', scopes: [] }, options)
}

const usage = { prompt: 1_000_000, completion: 100_000, cachedRead: 0, cachedWrite: 500_000, reasoning: 0 }

test('options of the caller multiply the price, and hour-long cache writes have their own price', () => {
  const model = {
    ...PLAIN,
    cachedWrite1h: '10',
    multipliers: { 'service_tier=priority': '2', 'speed=fast': '6', 'inference_geo=us': '1.1' },
  }
  const micros = (options: readonly string[]) => {
    const price = priceOf(model, options) ?? assert.fail(options.join())
    assert.ok((costAtMost(price, usage.prompt, usage.completion) ?? 0) >= costOf(price, usage))
    return costOf(price, usage)
  }
  const plain = micros([])
  assert.equal(plain, 2_500_000 + 3_125_000 + 2_500_000)
  assert.equal(micros(['service_tier=priority']), plain * 2)
  assert.equal(micros(['cache_control.ttl=1h']), 2_500_000 + 5_000_000 + 2_500_000)
  assert.equal(micros(['speed=fast', 'inference_geo=us']), (plain * 66) / 10)
})

test('an option without a price has none', () => {
  for (const option of ['service_tier=priority', 'speed=fast', 'cache_control.ttl=1h'])
    assert.equal(priceOf(PLAIN, [option]), null, option)
  assert.equal(priceOf({ ...PLAIN, multipliers: { 'speed=fast': '6' } }, ['speed=fast', 'inference_geo=us']), null)
})

test('a multiplier for an unknown option is rejected by name', () => {
  const decoded = tableOf({ ...PLAIN, multipliers: { priority: '2' } })
  assert.ok('problems' in decoded && decoded.problems[0]?.includes('multipliers[priority]'))
})
