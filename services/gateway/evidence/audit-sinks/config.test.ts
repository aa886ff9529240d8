import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { batchBytesOf } from './config.ts'
import { sinkConfig } from './testing/fixture.ts'

const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }

test('defaults of a sink are batches of 100, a poll per second, and 64 MiB of dead letters', () => {
  // Shows D3.limit.deadLetter.
  const one = { name: 'siem', type: 'syslog', address: 'tls://siem.example:6514' } as const
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...least, auditSinks: [one] }), {
    exists: () => true,
  })
  assert.deepEqual(problems, [])
  const [filled] = typedConfig(config).auditSinks
  assert.ok(filled !== undefined)
  // The test helper fills in the same defaults, except for the poll interval.
  assert.deepEqual(filled, { ...sinkConfig(one), pollIntervalMillis: 1000 })
  assert.deepEqual([filled.batchSize, filled.timeoutSeconds, filled.deadLetterMaxBytes], [100, 15, 67_108_864])
  assert.equal(batchBytesOf(filled), 900_000)
})
