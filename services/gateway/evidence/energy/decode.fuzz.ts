import assert from 'node:assert/strict'
import fc from 'fast-check'
import { filesNear, fuzzTarget } from '../../../../test/fuzz/target.ts'
import { decodeEnergy } from './decode.ts'
import { carbonOf, energyOf } from './estimate.ts'
import type { Bounds } from './table.ts'

const decimal = fc.oneof(fc.constantFrom('0', '1.25', '0.000001', '999999999', '1e3', '-1', '', '01', 5), fc.string())
const bounds = fc.dictionary(fc.constantFrom('min', 'max', 'x'), decimal, { maxKeys: 3 })
const model = fc.dictionary(fc.constantFrom('input', 'output', 'cachedRead', 'watts', 'x'), bounds, { maxKeys: 4 })
const key = fc.oneof(fc.constantFrom('openai/*', 'openai/gpt', '*/*', 'gpt', '__proto__'), fc.string({ maxLength: 12 }))
const file = fc.record(
  {
    version: fc.constantFrom(1, 2),
    id: fc.string({ maxLength: 3 }),
    source: fc.string({ maxLength: 3 }),
    models: fc.dictionary(key, model, { maxKeys: 3 }),
    regions: fc.dictionary(key, bounds, { maxKeys: 3 }),
  },
  { requiredKeys: ['version', 'id', 'source', 'models'] },
)

function tryFactors(bytes: Uint8Array): void {
  const decoded = decodeEnergy(bytes)
  if ('problems' in decoded) {
    assert.ok(decoded.problems.length > 0)
    return
  }
  for (const name of ['openai/gpt', 'other/model', '__proto__']) {
    const factors = decoded.table.model(name)
    if (factors === null) continue
    const usage = { prompt: 1e12, completion: 1e12, cachedRead: 1e11, cachedWrite: 1e11, reasoning: 1e11 }
    const energy = energyOf(factors, { usage, upstreamMs: 1e9 })
    const grid: Bounds = decoded.table.region(name) ?? { min: 0n, max: 1n }
    for (const { min, max } of [energy, carbonOf(energy, grid)]) {
      assert.ok(Number.isSafeInteger(min) && Number.isSafeInteger(max) && 0 <= min && min <= max)
    }
  }
}

/** The strict decoder throws for no file, and every accepted table can be used for estimates. */
export const target = fuzzTarget('gateway: energy.file', {
  'what is taken can be reckoned with': fc.property(filesNear(file), tryFactors),
})
