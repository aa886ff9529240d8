import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { checkGatewayConfig } from '../../config.ts'
import { examples } from '../../testing/configured.ts'
import { readRules } from './rules.ts'

test('the gateway.json of docs/sovereignty.md is valid', () => {
  for (const example of examples('sovereignty.md', 'json')) {
    const config = {
      policyFile: '/policies.json',
      auditPath: '/audit.jsonl',
      upstreamsFile: '/upstreams.json',
      identity: { publicKeyFiles: ['/pub.pem'] },
      ...JSON.parse(example),
    }
    const { problems } = checkGatewayConfig(JSON.stringify(config), { exists: () => true })
    assert.deepEqual(problems.map(formatProblem), [])
  }
})

test('the SovereigntyPolicy of docs/sovereignty.md behaves as documented', () => {
  const { object, problems } = parseResource('SovereigntyPolicy', examples('sovereignty.md', 'yaml')[0])
  assert.deepEqual(problems, [])
  const read = readRules(Buffer.from(JSON.stringify(object?.spec)))
  assert.ok('rules' in read)
  const { fault, dial } = read.rules
  assert.equal(fault({ jurisdiction: 'AT', dataClass: 'internal' }), null)
  assert.equal(fault({ jurisdiction: 'CH', dataClass: 'public' }), null)
  assert.equal(fault({ jurisdiction: 'HU', dataClass: 'public' }), 'runs in HU, which is denied')
  assert.equal(fault({ jurisdiction: null, dataClass: 'public' }), 'does not say where it runs, which is required')
  assert.equal(fault({ jurisdiction: 'FR', dataClass: 'confidential' }), null)
  assert.equal(
    fault({ jurisdiction: 'FR', dataClass: 'restricted' }),
    'runs in FR, which is not allowed for restricted data',
  )
  assert.deepEqual([dial?.admits('192.0.2.7'), dial?.admits('198.51.100.1')], [true, false])
})
