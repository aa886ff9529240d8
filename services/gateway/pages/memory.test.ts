import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { decodeStores } from '../builtin/memory/stores.ts'
import { LEAST } from '../builtin/web/testing/fixture.ts'
import { checkGatewayConfig, typedConfig } from '../config.ts'
import { examples } from '../testing/configured.ts'

test('the store, the policy and the configuration of docs/memory.md are valid, and the store is what the gateway reads', () => {
  const [storeText = '', policyText = ''] = examples('memory.md', 'yaml')
  const store = parseResource('MemoryStore', storeText)
  assert.deepEqual([store.problems, parseResource('ToolPolicy', policyText).problems], [[], []])
  const [json = ''] = examples('memory.md', 'json')
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...LEAST, ...JSON.parse(json) }), {
    exists: () => true,
  })
  assert.deepEqual(problems.map(formatProblem), [])
  const { dlpProfile, ...spec } = store.object?.spec ?? assert.fail()
  assert.ok(dlpProfile !== undefined && dlpProfile in typedConfig(config).dlpProfiles)
  const file = { version: 1, stores: { 'support/preferences': { ...spec, dlpProfile } } }
  const decoded = decodeStores(Buffer.from(JSON.stringify(file)))
  if ('problems' in decoded) assert.fail(decoded.problems.join())
  const { retentionMs, ...limits } = decoded.stores.of('support').get('preferences') ?? assert.fail()
  assert.equal(retentionMs, 90 * 86_400_000)
  assert.deepEqual(limits, {
    ...{ namespace: 'support', name: 'preferences', scope: 'user', dlpProfile, maxItems: 200, maxItemBytes: 4096 },
    taints: ['customer-words'],
  })
})
