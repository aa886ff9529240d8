import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Choice } from './choice.ts'
import { buildRoutes } from './registry.ts'

const none = { tierJurisdictions: {}, dataClassModels: {} }

test('a data class uses its own globs, else those of the next lower class, else all models', () => {
  // Shows D3.modelRouting.dataClassModels
  const allowed = (dataClassModels: ConstructorParameters<typeof Choice>[0]['dataClassModels'], model: string) => {
    const choice = new Choice({ ...none, dataClassModels })
    return (['public', 'internal', 'confidential', 'restricted'] as const).map((name) => choice.allows(name, model))
  }
  assert.deepEqual(allowed({}, 'gpt-5'), [true, true, true, true])
  assert.deepEqual(allowed({ internal: ['gpt-*'] }, 'gpt-5'), [true, true, true, true])
  assert.deepEqual(allowed({ internal: ['gpt-*'] }, 'llama'), [true, false, false, false])
  const three = { public: ['*'], confidential: ['eu/*', 'own'], restricted: ['own'] }
  assert.deepEqual(allowed(three, 'gpt-5'), [true, true, false, false])
  assert.deepEqual(allowed(three, 'eu/m'), [true, true, true, false])
  assert.deepEqual(allowed(three, 'own'), [true, true, true, true])
  assert.deepEqual(allowed({ restricted: [] }, 'm'), [true, true, true, false])
})

test('endpoints in the preferred jurisdiction come first, otherwise in the order of the route', () => {
  // Shows D3.modelRouting.tierJurisdictions, D3.route.preferJurisdiction, D2.model.jurisdiction, D2.model.jurisdiction.preferred,
  // D2.fallback.jurisdiction
  const choice = new Choice({ ...none, tierJurisdictions: { 'tier-2': 'de', 'tier-1': 'FR' } })
  const places = ['US', '', 'DE-BY', 'FR', 'DE', 'DEX']
  const order = (preferJurisdiction: string, tier: string) => {
    const [first, ...fallbacks] = places.map((jurisdiction) => ({
      upstream: `http://x.example/${jurisdiction || 'none'}`,
      jurisdiction,
    }))
    const entry = { ...first, upstream: first?.upstream ?? '', preferJurisdiction, fallbacks }
    const route = buildRoutes(null, { r: entry }).route('r') ?? assert.fail()
    return choice
      .groups(route, tier)
      .flat()
      .map(({ upstream }) => upstream.split('/').at(-1))
  }
  const asNamed = ['US', 'none', 'DE-BY', 'FR', 'DE', 'DEX']
  assert.deepEqual(order('', 'tier-0'), asNamed)
  assert.deepEqual(order('', 'tier-2'), ['DE-BY', 'DE', 'US', 'none', 'FR', 'DEX'])
  assert.deepEqual(order('', 'tier-1'), ['FR', 'US', 'none', 'DE-BY', 'DE', 'DEX'])
  assert.deepEqual(order('US', 'tier-2'), asNamed)
  assert.deepEqual(order('FR', 'tier-2')[0], 'FR')
})
