import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestIdentity } from '@plat/testkit/identity'
import { startTestService } from '@plat/testkit/processes/service'
import { fetchPromtool, type Promtool } from './testing/promtool.ts'
import { served } from './testing/served.ts'

let promtool: Promtool

before(() => {
  promtool = fetchPromtool()
})

after(() => promtool?.remove())

/** Returns the output of promtool, which is empty without problems. */
const complaints = (metrics: string) => promtool.run(['check', 'metrics'], metrics)

test('promtool finds nothing wrong with the metrics of a gateway that has served calls of every kind', async (t) => {
  const { metrics } = await served(t)
  const text = await metrics()
  assert.match(text, /^plat_gateway_tool_pin_events_total\{/m)
  assert.equal(complaints(text), '')
})

test('promtool finds nothing wrong with the one series of the broker', async () => {
  // Shows D3.exposition.brokerOnlyBuildInfo.
  const broker = await startTestIdentity()
  try {
    const text = await (await fetch(`${broker.url}/metrics`)).text()
    assert.deepEqual(text.match(/^# TYPE .*$/gm), ['# TYPE plat_build_info gauge'])
    assert.equal(complaints(text), '')
  } finally {
    await broker.stop()
  }
})

test('promtool finds nothing wrong with the metrics of the attestation service', async () => {
  const env = { PLAT_ATTESTATION_TOKEN: 'a', PLAT_BROKER_TOKEN: 'b' }
  const attestation = await startTestService('attestation', { env })
  try {
    for (const where of ['redeem', 'renew']) {
      await fetch(`${attestation.url}/v1/${where}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
    }
    const text = await (await fetch(`${attestation.url}/metrics`)).text()
    assert.match(text, /^plat_attest_failure_total\{reason="invalid_request"\} 1$/m)
    assert.match(text, /^plat_attest_renewal_failure_total\{reason="invalid_request"\} 1$/m)
    assert.equal(complaints(text), '')
  } finally {
    await attestation.stop()
  }
})

test('promtool does complain', () => {
  assert.match(complaints('plat_calls 1\n'), /no help text/)
  assert.match(complaints('# HELP plat_calls Calls\n# TYPE plat_calls counter\nplat_calls 1\n'), /_total/)
})
