import assert from 'node:assert/strict'
import { test } from 'node:test'
import { examples } from '../../testing/configured.ts'
import { decodeEnergy } from './decode.ts'
import { carbonOf, energyOf } from './estimate.ts'
import { type EnergyTable, noFactors } from './table.ts'

const least = { version: 1, id: 't', source: 'measured', models: {} }
const span = (min: string, max = min) => ({ min, max })
const decode = (more: object) => decodeEnergy(Buffer.from(JSON.stringify({ ...least, ...more })))

function tableOf(more: object): EnergyTable {
  const decoded = decode(more)
  if ('problems' in decoded) assert.fail(decoded.problems.join('\n'))
  return decoded.table
}

function problemsOf(more: object): readonly string[] {
  const decoded = decode(more)
  return 'problems' in decoded ? decoded.problems : []
}

function energy(entry: object, used: Partial<Parameters<typeof energyOf>[1]['usage']>, upstreamMs = 0) {
  const factors = tableOf({ models: { 'a/b': entry } }).model('a/b')
  assert.ok(factors !== null)
  const usage = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0, ...used }
  return energyOf(factors, { usage, upstreamMs })
}

test('tokens count by kind, cached ones as input by default', () => {
  const factors = { input: span('0.1', '0.2'), output: span('1', '3') }
  assert.deepEqual(energy(factors, { prompt: 2000, completion: 500 }), { min: 700_000, max: 1_900_000 })
  assert.deepEqual(energy(factors, { prompt: 2000, cachedRead: 1000 }), { min: 200_000, max: 400_000 })
  const cached = { ...factors, cachedRead: span('0.01') }
  assert.deepEqual(energy(cached, { prompt: 2000, cachedRead: 1000 }), { min: 110_000, max: 210_000 })
})

test('response time counts if power is given, alone or beside tokens', () => {
  assert.deepEqual(energy({ watts: span('360', '720') }, {}, 10_000), { min: 1_000_000, max: 2_000_000 })
  const both = { input: span('1'), output: span('1'), watts: span('360') }
  assert.deepEqual(energy(both, { prompt: 1000 }, 10_000), { min: 2_000_000, max: 2_000_000 })
})

test('estimates are never narrower than the bounds: the lower one is rounded down, the upper one up', () => {
  assert.deepEqual(energy({ input: span('0.000001'), output: span('0') }, { prompt: 1 }), { min: 0, max: 1 })
  assert.deepEqual(carbonOf({ min: 1_000_000, max: 1_000_000 }, { min: 400_000_001n, max: 400_000_001n }), {
    min: 400_000,
    max: 400_001,
  })
})

test('inconsistent usage of providers yields neither negative energy nor unsafe integers', () => {
  const factors = { input: span('999999999'), output: span('999999999') }
  assert.deepEqual(energy(factors, { prompt: 5, cachedRead: 10, completion: -3 }).min, 9_999_999_990_000)
  assert.equal(energy(factors, { prompt: 1e15 }).max, Number.MAX_SAFE_INTEGER)
})

test('an exact key wins over patterns, a longer pattern over a shorter one; other models are unknown', () => {
  const models = { '*/*': { watts: span('1') }, 'openai/*': { watts: span('2') }, 'openai/gpt': { watts: span('3') } }
  const table = tableOf({ models, regions: { 'eu-*': span('200'), 'eu-north-1': span('20') } })
  const watts = (key: string) => table.model(key)?.watts?.min
  assert.deepEqual(['openai/gpt', 'openai/gpt-2', 'bedrock/x'].map(watts), [3_000_000n, 2_000_000n, 1_000_000n])
  assert.equal(table.region('eu-north-1')?.max, 20_000_000n)
  assert.equal(table.region('eu-west-1')?.max, 200_000_000n)
  assert.equal(table.region('us-east-1'), null)
  assert.equal(noFactors.model('openai/gpt'), null)
})

test('a table with errors is refused as a whole, naming every error', () => {
  const one = { input: span('1'), output: span('1') }
  assert.deepEqual(problemsOf({ models: { 'a/b': one } }), [])
  const models = {
    gpt: one,
    'a/1': { input: span('1') },
    'a/2': { cachedRead: span('1'), watts: span('1') },
    'a/3': {},
    'a/4': { ...one, output: span('2', '1') },
  }
  assert.deepEqual(problemsOf({ models, regions: { eu: span('2', '1') } }), [
    'models[gpt]: must read <provider>/<model>, with * for any text',
    'models[a/1]: input and output need each other',
    'models[a/2].cachedRead: needs input and output',
    'models[a/3]: needs input and output, or watts',
    'models[a/4].output.max: must be at least min',
    'regions[eu].max: must be at least min',
  ])
  for (const wrong of [{ source: '' }, { id: undefined }, { x: 1 }, { models: { 'a/b': { ...one, x: 1 } } }])
    assert.equal(problemsOf(wrong).length, 1, JSON.stringify(wrong))
  for (const text of ['-1', '1e3', '.5', '1.0000001', 1]) {
    const problems = problemsOf({ models: { 'a/b': { watts: { min: '0', max: text } } } })
    assert.match(problems.join(), /models\[?.*a\/b.*max/, String(text))
  }
})

test('the table of docs/energy.md is valid', () => {
  const [file = ''] = examples('energy.md', 'json')
  const decoded = decodeEnergy(Buffer.from(file))
  assert.ok('table' in decoded, 'problems' in decoded ? decoded.problems.join('\n') : '')
})
