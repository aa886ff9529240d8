import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { batchBytesOf } from './config.ts'
import { sinkConfig } from './testing/fixture.ts'

const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }

test('what a sink does not say is a batch of 100, a look a second, and 64 MiB of dead letters', () => {
  // Shows D3.limit.deadLetter.
  const one = { name: 'siem', type: 'syslog', address: 'tls://siem.example:6514' } as const
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...least, auditSinks: [one] }), {
    exists: () => true,
  })
  assert.deepEqual(problems, [])
  const [filled] = typedConfig(config).auditSinks
  assert.ok(filled !== undefined)
  // The helper of tests fills in what the table does, but for the pace.
  assert.deepEqual(filled, { ...sinkConfig(one), pollIntervalMillis: 1000 })
  assert.deepEqual([filled.batchSize, filled.timeoutSeconds, filled.deadLetterMaxBytes], [100, 15, 67_108_864])
  assert.equal(batchBytesOf(filled), 900_000)
})
