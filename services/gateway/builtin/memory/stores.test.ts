import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeStores } from './stores.ts'

const decode = (file: object) => decodeStores(Buffer.from(JSON.stringify(file)))

test('stores have the defaults of their resource, and are looked up by namespace', () => {
  const decoded = decode({ version: 1, stores: { 'default/notes': { scope: 'agent' } } })
  if ('problems' in decoded) assert.fail(decoded.problems.join())
  assert.deepEqual(
    [...decoded.stores.of('default').values()],
    [
      {
        ...{ namespace: 'default', name: 'notes', scope: 'agent', retentionMs: 30 * 86_400_000, maxItems: 1000 },
        ...{ maxItemBytes: 8192, dlpProfile: '', taints: [] },
      },
    ],
  )
  assert.equal(decoded.stores.of('other').size, 0)
})

test('an invalid file is refused with every problem', () => {
  const problems = (stores: object) => {
    const decoded = decode({ version: 1, stores })
    return 'problems' in decoded ? decoded.problems : []
  }
  assert.equal(problems({ notes: { scope: 'agent' } })[0], 'stores[notes]: must be <namespace>/<name>')
  const wrong = [
    { scope: 'everybody' },
    {},
    { scope: 'agent', retentionDays: 0 },
    { scope: 'agent', maxItems: 10_001 },
    { scope: 'agent', maxItemBytes: 65_537 },
    { scope: 'agent', taints: ['*'] },
    { scope: 'agent', taints: ['two words'] },
    { scope: 'agent', dlpProfile: 'No' },
    { scope: 'agent', shared: true },
  ]
  for (const spec of wrong) assert.equal(problems({ 'default/notes': spec }).length, 1, JSON.stringify(spec))
})
