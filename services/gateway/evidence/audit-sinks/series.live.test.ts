import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'
import { startHttpReceiver } from './testing/servers.ts'

test('a gateway exposes metrics for each sink, and none without sinks', async (t) => {
  // Shows D3.metric.plat_gateway_audit_sink_dead_lettered_total, D3.metric.plat_gateway_audit_sink_lag,
  // D3.metric.plat_gateway_audit_sink_delivered_total.
  const server = await startHttpReceiver(t)
  server.answers = ({ body }) => ({ status: body.includes('"kind":"config"') ? 422 : 200 })
  const sink = { name: 'picky', type: 'http', url: server.url, format: 'json', pollIntervalMillis: 5 }
  const { gateway } = await started(t, { auditSinks: [sink] })
  const series = async () => await (await fetch(`${gateway.url}/metrics`)).text()
  // Dead-lettered at its third refusal, after two backoffs.
  const lettered = 'plat_gateway_audit_sink_dead_lettered_total{sink="picky"} 1\n'
  await until(async () => (await series()).includes(lettered), 'the record put aside')
  await until(async () => (await series()).includes('plat_gateway_audit_sink_lag{sink="picky"} 0\n'), 'no lag')
  const names = await series()
  assert.match(names, /^plat_gateway_audit_sink_errors_total\{sink="picky"\} [2-9]$/m)
  const { gateway: plain } = await started(t, {})
  assert.ok(!(await (await fetch(`${plain.url}/metrics`)).text()).includes('audit_sink'))
})
