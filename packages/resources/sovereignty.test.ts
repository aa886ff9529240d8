import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { residencyFault, type Sovereignty } from './sovereignty.ts'

const DATA_CLASSES = ['public', 'internal', 'confidential', 'restricted'] as const

function fault(rules: Sovereignty, jurisdiction: string | null, dataClass: (typeof DATA_CLASSES)[number] = 'internal') {
  return residencyFault(rules, { jurisdiction, dataClass })
}

test('an upstream must run in an allowed jurisdiction or in a part of one', () => {
  const rules = { allowedJurisdictions: ['US', 'de-by', 'EU'] }
  for (const at of ['US', 'us', 'US-CA', 'DE-BY', 'DE', 'FR', 'EU', 'eu-central'])
    assert.equal(fault(rules, at), null, at)
  assert.equal(fault(rules, 'CH'), 'runs in CH, which is not allowed')
  assert.equal(fault({ allowedJurisdictions: ['DE-BY'] }, 'DE'), 'runs in DE, which is not allowed')
  assert.equal(fault({ allowedJurisdictions: ['DE'] }, 'EU'), 'runs in EU, which is not allowed')
  assert.equal(fault({ allowedJurisdictions: ['US'] }, 'USA-X'), 'runs in USA-X, which is not allowed')
  assert.equal(fault({}, 'CH'), null)
})

test('a denied jurisdiction is denied whatever is allowed, with its parts and every place that contains it', () => {
  const rules = { allowedJurisdictions: ['US', 'EU'], deniedJurisdictions: ['US-CA', 'HU'] }
  for (const at of ['US-CA', 'US-CA-1', 'US', 'HU', 'EU'])
    assert.equal(fault(rules, at), `runs in ${at}, which is denied`)
  for (const at of ['US-NY', 'DE']) assert.equal(fault(rules, at), null, at)
  assert.equal(fault({ deniedJurisdictions: ['EU'] }, 'SE'), 'runs in SE, which is denied')
})

test('an upstream without a jurisdiction is refused only if one is required', () => {
  assert.equal(fault({ allowedJurisdictions: ['DE'], deniedJurisdictions: ['US'] }, null), null)
  assert.equal(fault({ requireJurisdiction: true }, null), 'does not say where it runs, which is required')
  assert.equal(fault({ requireJurisdiction: true }, 'US'), null)
})

test('a data class may be restricted further, and passes its rules on to higher classes without rules', () => {
  const rules: Sovereignty = {
    allowedJurisdictions: ['EU', 'US'],
    dataClassRules: {
      internal: { allowedJurisdictions: ['EU'] },
      restricted: { allowedJurisdictions: ['DE'], requireJurisdiction: true },
    },
  }
  assert.equal(fault(rules, 'US', 'public'), null)
  assert.equal(fault(rules, 'US', 'internal'), 'runs in US, which is not allowed for internal data')
  assert.equal(fault(rules, 'US', 'confidential'), 'runs in US, which is not allowed for confidential data')
  assert.equal(fault(rules, 'FR', 'confidential'), null)
  assert.equal(fault(rules, 'FR', 'restricted'), 'runs in FR, which is not allowed for restricted data')
  assert.equal(fault(rules, null, 'confidential'), null)
  assert.equal(fault(rules, null, 'restricted'), 'does not say where it runs, which is required for restricted data')
  assert.equal(fault({ dataClassRules: { restricted: { deniedJurisdictions: ['US'] } } }, 'US', 'confidential'), null)
})

test('an additional rule never allows what was refused', () => {
  const code = fc.constantFrom('DE', 'DE-BY', 'FR', 'EU', 'US', 'US-CA', 'CH')
  const place = fc.record({ jurisdiction: fc.option(code), dataClass: fc.constantFrom(...DATA_CLASSES) })
  const rules = fc.record({
    allowedJurisdictions: fc.array(code, { minLength: 1 }),
    deniedJurisdictions: fc.array(code),
  })
  fc.assert(
    fc.property(rules, place, code, (before, where, more) => {
      if (residencyFault(before, where) === null) return
      assert.notEqual(
        residencyFault({ ...before, deniedJurisdictions: [...before.deniedJurisdictions, more] }, where),
        null,
      )
      assert.notEqual(residencyFault({ ...before, requireJurisdiction: true }, where), null)
      assert.notEqual(
        residencyFault({ ...before, dataClassRules: { public: { allowedJurisdictions: [more] } } }, where),
        null,
      )
    }),
  )
})
