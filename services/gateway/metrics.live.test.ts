import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { served } from './testing/served.ts'

/** Area Tools of docs/spec/gateway.md, to the letter: type and labels of each series. */
const TOOLS: Readonly<Record<string, readonly [type: string, ...labels: string[]]>> = {
  plat_gateway_decisions_total: ['counter', 'action', 'server'],
  plat_gateway_requests_total: ['counter', 'server', 'method', 'code'],
  plat_gateway_upstream_latency_seconds: ['histogram', 'server'],
  plat_gateway_upstream_errors_total: ['counter', 'server'],
  plat_gateway_upstreams_configured: ['gauge'],
  plat_gateway_auth_failures_total: ['counter', 'reason'],
  plat_gateway_trusted_keys: ['gauge'],
  plat_gateway_tool_pin_events_total: ['counter', 'server', 'event'],
  plat_gateway_svid_checks_total: ['counter', 'result'],
  plat_gateway_dpop_requests_total: ['counter', 'outcome'],
}

/** The values of closed labels, each of which the calls produced. Without a configured issuer there is no wrong one. */
const SAID: Readonly<Record<string, readonly string[]>> = {
  'plat_gateway_decisions_total action': ['allow', 'deny', 'require_approval'],
  'plat_gateway_auth_failures_total reason': 'missing malformed signature expired audience typ binding kid'.split(' '),
  'plat_gateway_tool_pin_events_total event': ['learned', 'drifted', 'hidden', 'denied', 'held'],
  'plat_gateway_svid_checks_total result': ['match', 'mismatch', 'absent', 'untrusted'],
  'plat_gateway_dpop_requests_total outcome': ['bound', 'unbound', 'missing', 'invalid', 'replayed'],
}

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function samplesOf(text: string): Sample[] {
  return [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key, value]),
    ),
    value: Number(value),
  }))
}

test('the series of area Tools have the types and labels of the contract, and count what happened', async (t) => {
  // Shows D3.exposition.dpopBound, D3.exposition.serverUnknown.
  // Shows D3.metric.plat_gateway_decisions_total, D3.metric.plat_gateway_requests_total,
  // D3.metric.plat_gateway_upstream_latency_seconds, D3.metric.plat_gateway_upstream_errors_total,
  // D3.metric.plat_gateway_upstreams_configured, D3.metric.plat_gateway_auth_failures_total,
  // D3.metric.plat_gateway_trusted_keys, D3.metric.plat_gateway_tool_pin_events_total,
  // D3.metric.plat_gateway_svid_checks_total and D3.metric.plat_gateway_dpop_requests_total.
  const { metrics } = await served(t)
  const labelValues = (text: string, series: string, label: string) =>
    new Set(samplesOf(text).flatMap(({ name, labels }) => (name === series ? [labels[label]] : [])))
  let text = ''
  await until(async () => {
    text = await metrics()
    return labelValues(text, 'plat_gateway_revoked_total', 'scope').size === 1
  }, 'the last call, which is counted after its answer')
  for (const [name, [type, ...labels]] of Object.entries(TOOLS)) {
    assert.ok(text.includes(`# TYPE ${name} ${type}\n`), name)
    const samples = samplesOf(text).filter((one) => one.name.replace(/_(?:bucket|sum|count)$/, '') === name)
    assert.notEqual(samples.length, 0, name)
    for (const one of samples) {
      const own = Object.keys(one.labels).filter((label) => type !== 'histogram' || label !== 'le')
      assert.deepEqual(own, labels, one.name)
    }
  }
  for (const [where, words] of Object.entries(SAID)) {
    const [series = '', label = ''] = where.split(' ')
    assert.deepEqual(labelValues(text, series, label), new Set(words), where)
  }
  const bounds = labelValues(text, 'plat_gateway_upstream_latency_seconds_bucket', 'le')
  assert.deepEqual([...bounds], '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 +Inf'.split(' '))
  assert.match(text, /^plat_gateway_upstreams_configured 5$/m)
  assert.match(text, /^plat_gateway_trusted_keys 1$/m)
  assert.match(text, /^plat_gateway_upstream_errors_total\{server="dead"\} [1-9]/m)
  const pinned = labelValues(text, 'plat_gateway_tool_pin_events_total', 'server')
  assert.deepEqual(pinned, new Set(['strict', 'asking', 'learning']))
  // A caller chooses names: before the server is resolved they count as one.
  assert.ok(labelValues(text, 'plat_gateway_decisions_total', 'server').has('unknown'))
  assert.ok(!labelValues(text, 'plat_gateway_decisions_total', 'server').has('nobody'))
})
