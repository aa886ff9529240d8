import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import fc from 'fast-check'
import { Snapshots, type Usage } from '../../../call/index.ts'
import { buildRoutes } from '../../../targets/models/registry.ts'
import { decodePricing } from './decode.ts'
import { costAtMost, costOf, type ModelPrice, outputThatFits } from './price.ts'
import { pricingSlot, watchPricing } from './pricing.ts'
import { sandboxCostOf } from './sandbox.ts'
import { noPrices, type PriceTable } from './table.ts'

const file = (more: object) => Buffer.from(JSON.stringify({ version: 1, currency: 'USD', id: 'p1', ...more }))

function tableOf(more: object): PriceTable {
  const decoded = decodePricing(file(more))
  if ('problems' in decoded) assert.fail(decoded.problems.join('; '))
  return decoded.table
}

function problemsOf(bytes: Uint8Array): readonly string[] {
  const decoded = decodePricing(bytes)
  return 'problems' in decoded ? decoded.problems : []
}

function priceOf(entry: object): ModelPrice {
  const price = tableOf({ models: { 'openai/m': entry } }).model(plain('openai/m'))
  assert.ok(price !== null)
  return price
}

const plain = (key: string) => ({ key, scopes: [] })

const used = (more: Partial<Usage>): Usage => ({
  prompt: 0,
  completion: 0,
  cachedRead: 0,
  cachedWrite: 0,
  reasoning: 0,
  ...more,
})

test('an exact key beats a glob, and the longer glob beats the shorter', () => {
  const at = (input: string) => ({ input, output: '0' })
  const table = tableOf({
    models: { 'openai/*': at('1'), 'openai/gpt-5*': at('2'), 'openai/gpt-5-mini': at('3'), 'openai/*-mini': at('4') },
    tools: { 'default/search/*': { perCall: '0.002' }, 'default/search/fast': { perCall: '0' } },
  })
  const input = (key: string) => table.model(plain(key))?.base.input
  assert.equal(input('openai/gpt-5-mini'), 3_000_000n)
  assert.equal(input('openai/gpt-5-nano'), 2_000_000n)
  assert.equal(input('openai/o4-mini'), 4_000_000n)
  assert.equal(input('openai/o4'), 1_000_000n)
  assert.equal(table.model(plain('azure/o4')), null)
  assert.deepEqual([table.tool('default/search/web'), table.tool('default/search/fast')], [2_000, 0])
  assert.equal(table.tool('default/notes/add'), 0)
})

test('a price for a route and upstream beats one for the route, then for the upstream, then for the model alone', () => {
  const at = (input: string) => ({ input, output: '0' })
  const table = tableOf({
    models: {
      'openai/m': at('1'),
      'https://eu.example/v1/#openai/*': at('2'),
      'https://EU.example#openai/m': at('3'),
      'llm/small#openai/*': at('4'),
      'llm/small#https://eu.example#openai/m': at('5'),
    },
  })
  const models = { upstream: 'https://eu.example/v1', fallbacks: [{ upstream: 'https://us.example/v1' }] }
  const routes = buildRoutes(null, {
    small: models,
    other: { ...models, fallbacks: [{ upstream: 'https://eu.example/v2/' }] },
  })
  const input = (route: string, at: number, model = 'm') => {
    const scopes = routes.route(route)?.endpoints[at]?.priceScopes ?? assert.fail('no endpoint')
    return Number(table.model({ key: `openai/${model}`, scopes })?.base.input ?? -1) / 1e6
  }
  assert.deepEqual([input('small', 0), input('small', 1), input('small', 0, 'x')], [5, 4, 4])
  assert.deepEqual(
    [input('other', 0), input('other', 1), input('other', 0, 'x'), input('other', 1, 'x')],
    [2, 3, 2, -1e-6],
  )
})

test('malformed and duplicate model keys are rejected by name', () => {
  const problems = (...keys: string[]) =>
    problemsOf(file({ models: Object.fromEntries(keys.map((key) => [key, { input: '1', output: '1' }])) }))
  const form = 'must read [llm/<route>#][<upstream>#]<provider>/<model>, with * only in the model'
  for (const key of [
    'gpt',
    '*/m',
    'llm/*#openai/m',
    'https://*.example#openai/m',
    'small#openai/m',
    'https://#openai/m',
  ])
    assert.deepEqual(problems(key), [`models[${key}]: ${form}`])
  assert.deepEqual(problems('https://a.example#openai/m', 'https://A.example/#openai/m'), [
    'models[https://A.example/#openai/m]: duplicate of an earlier key',
  ])
})

test('each kind of token has a price; cached and reasoning tokens fall back to input and output', () => {
  const plain = priceOf({ input: '1.25', output: '10' })
  const all = priceOf({ input: '1.25', output: '10', cachedRead: '0.125', reasoning: '20', cachedWrite: '2' })
  const usage = used({ prompt: 1000, completion: 100, cachedRead: 400, reasoning: 50 })
  assert.equal(costOf(plain, usage), 1250 + 1000)
  assert.equal(costOf(all, usage), 600 * 1.25 + 400 * 0.125 + 500 + 1000)
  assert.equal(costOf(all, used({ prompt: 100, cachedWrite: 100 })), 200)
})

test('a call is rounded up once, not once for each kind', () => {
  const price = priceOf({ input: '0.4', output: '0.4' })
  assert.equal(costOf(price, used({ prompt: 1, completion: 1 })), 1)
  assert.equal(costOf(price, used({ prompt: 2, completion: 1 })), 2)
  assert.equal(costOf(price, used({})), 0)
})

test('a price per call is added, unless the provider charged for no token', () => {
  const price = priceOf({ input: '1', output: '1', perCall: '0.01' })
  assert.equal(costOf(price, used({ prompt: 5 })), 10_005)
  assert.equal(costOf(price, used({})), 0)
})

test('a longer prompt costs the rates of its tier as a whole', () => {
  const price = priceOf({
    input: '1',
    output: '10',
    cachedRead: '0.1',
    tiers: [
      { aboveInputTokens: 1000, input: '2' },
      { aboveInputTokens: 5000, input: '4', output: '20', cachedRead: '0.4' },
    ],
  })
  assert.equal(costOf(price, used({ prompt: 1000, completion: 1 })), 1010)
  assert.equal(costOf(price, used({ prompt: 1001, completion: 1 })), 2012)
  // The tier has no price for cached tokens, so they cost its input rate and never less.
  assert.equal(costOf(price, used({ prompt: 2000, cachedRead: 2000 })), 4000)
  assert.equal(costOf(price, used({ prompt: 10_000, completion: 1, cachedRead: 10_000 })), 4020)
})

test('a model without an input or output price has no bound, and a large amount is exact', () => {
  assert.equal(costAtMost(priceOf({ output: '1' }), 1, 1), null)
  assert.equal(costAtMost(priceOf({ input: '1' }), 1, 1), null)
  assert.equal(costAtMost(priceOf({ input: '1' }), 7, 0), 7)
  assert.equal(costOf(priceOf({ input: '999999999' }), used({ prompt: 9_000_001 })), 9_000_000_990_999_999)
})

const decimal = fc.nat({ max: 20_000_000 }).map((micros) => (micros / 1e6).toFixed(6))
const anyRates = { input: decimal, output: decimal, cachedRead: decimal, cachedWrite: decimal, reasoning: decimal }
const anyPrice = fc.record(
  {
    ...anyRates,
    perCall: decimal,
    tiers: fc.array(fc.record({ aboveInputTokens: fc.nat(5000), ...anyRates }), { maxLength: 1 }),
  },
  { requiredKeys: ['input', 'output'] },
)

test('no usage within the bounds costs more than the bound, and outputThatFits is maximal', () => {
  const tokens = fc.nat({ max: 10_000 })
  fc.assert(
    fc.property(
      anyPrice,
      tokens,
      tokens,
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 5, maxLength: 5 }),
      (entry, input, output, parts) => {
        const price = priceOf(entry)
        const [p = 0, c = 0, read = 0, write = 0, think = 0] = parts
        const prompt = Math.floor(p * input)
        const completion = Math.floor(c * output)
        const cachedRead = Math.floor(read * prompt)
        const cachedWrite = Math.floor(write * (prompt - cachedRead))
        const cost = costOf(price, {
          prompt,
          completion,
          cachedRead,
          cachedWrite,
          reasoning: Math.floor(think * completion),
        })
        const bound = costAtMost(price, input, output) ?? 0
        assert.ok(cost <= bound, `${cost} is above ${bound}`)
        const fits = outputThatFits(price, input, bound)
        assert.ok(fits >= output)
        if (fits < Number.MAX_SAFE_INTEGER) {
          assert.ok((costAtMost(price, input, fits) ?? 0) <= bound)
          assert.ok((costAtMost(price, input, fits + 1) ?? 0) > bound)
        }
        assert.ok(
          outputThatFits(price, input, (costAtMost(price, input, 0) ?? 0) - 1) < 0 || input === 0 || bound === 0,
        )
      },
    ),
  )
})

test('every problem of a file is reported with its path', () => {
  const wrong = file({
    currency: 'dollars',
    models: { 'gpt-5': { input: '1' }, 'openai/x': { input: 1.25, outptu: '1', cachedRead: '-1' } },
    tools: { 'default/search/*': {} },
  })
  const problems = problemsOf(wrong).join('\n')
  for (const part of [
    'currency',
    'models[openai/x].input',
    'models[openai/x].outptu',
    'models[openai/x].cachedRead',
    'tools[default/search/*].perCall',
  ]) {
    assert.ok(problems.includes(part), `${part} is not named in:\n${problems}`)
  }
  const tiers = [{ aboveInputTokens: 5 }, { aboveInputTokens: 5 }]
  const names = file({
    models: { 'gpt-5': {}, 'open*/x': {}, 'openai/t': { tiers } },
    tools: { 'a/b': { perCall: '1' } },
  })
  assert.equal(problemsOf(names).length, 4)
  assert.equal(problemsOf(Buffer.from('{"version":1,"version":1}')).length, 1)
  assert.equal(problemsOf(file({ version: 2 })).length, 1)
})

test('fractions of micro-units, signs and exponents are rejected', () => {
  for (const input of ['0.0000001', '1e3', '+1', '.5', '5.', '01', '', '1k', '1000000000']) {
    assert.equal(problemsOf(file({ models: { 'openai/m': { input } } })).length, 1, input)
  }
})

test('prices are reloaded when the file changes, and an invalid file leaves the previous ones in force', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plat-'))
  try {
    const path = join(folder, 'prices.json')
    const clock = new TestClock()
    const snapshots = new Snapshots()
    const config = { budgetCurrency: '', pricingFile: path, policyReloadSeconds: 2 }
    const watch = watchPricing({ config, snapshots, clock, log: silentLog })
    const inForce = () => snapshots.current.get(pricingSlot).id
    await watch.check()
    assert.equal(inForce(), '')
    writeFileSync(path, file({ id: 'one' }))
    await watch.check()
    assert.equal(inForce(), 'one')
    writeFileSync(path, '{"version":1')
    await watch.check()
    assert.equal(inForce(), 'one')
    writeFileSync(path, file({ id: 'two' }))
    await watch.check()
    assert.equal(inForce(), 'two')
    watch.stop()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('sandbox usage is priced by the hour, exactly, and rounded up once', () => {
  const decoded = decodePricing(
    Buffer.from(
      JSON.stringify({
        version: 1,
        currency: 'EUR',
        id: 'p',
        sandbox: { cpuHour: '0.04', memoryGiBHour: '0.005', gpuHour: '2.5' },
      }),
    ),
  )
  assert.ok('table' in decoded && decoded.table.sandbox !== null)
  const { sandbox } = decoded.table
  const nothing = { cpuMs: 0, memoryByteSeconds: 0, gpuMs: 0 }
  const hour = 3_600_000
  assert.equal(sandboxCostOf(sandbox, { ...nothing, cpuMs: hour }), 40_000)
  assert.equal(sandboxCostOf(sandbox, { ...nothing, memoryByteSeconds: 2 * 2 ** 30 * 3600 }), 10_000)
  assert.equal(sandboxCostOf(sandbox, { ...nothing, gpuMs: hour / 2 }), 1_250_000)
  assert.equal(sandboxCostOf(sandbox, { cpuMs: 1, memoryByteSeconds: 1, gpuMs: 0 }), 1)
  assert.equal(sandboxCostOf(sandbox, nothing), 0)
  const largest = Number.MAX_SAFE_INTEGER
  assert.equal(
    sandboxCostOf(sandbox, { cpuMs: largest, memoryByteSeconds: largest, gpuMs: largest }),
    6_355_079_485_829_211,
  )
  assert.equal(noPrices.sandbox, null)
})
