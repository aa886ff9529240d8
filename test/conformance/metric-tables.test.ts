import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attestationMetrics } from '@plat/attestation/metrics'
import { gatewayMetricRows } from '@plat/gateway/metric-rows'
import type { MetricRow } from '@plat/metrics'
import { operatorMetrics } from '@plat/operator/metrics'
import { requirements } from './requirements.ts'

/** Series of every registry, which no table names. */
const EVERYWHERE = new Set(['plat_build_info'])

const tables: readonly (readonly MetricRow[])[] = [gatewayMetricRows, operatorMetrics, attestationMetrics]
const rows = new Map(tables.flat().map((row) => [row.name, row]))

interface Series {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  /** The first and the last bucket, in seconds; null: the contract names none. */
  readonly buckets: readonly [number, number] | null
}

/** Reads a row such as ``Histogram of the operator: `tier`, `mode`; buckets from 0.1 to 60 s.`` */
function seriesOf(name: string, text: string): Series {
  const [head = '', ...rest] = text.replaceAll(/\([^)]*\)/g, '').split(':')
  const [type = ''] = head.toLowerCase().split(/[^a-z]/, 1)
  const [labels = ''] = rest.join(':').split(/[;.]/, 1)
  const [, from, to] = /buckets from ([\d.]+) to ([\d.]+) s/.exec(text) ?? []
  return {
    name,
    type,
    labels: [...labels.matchAll(/`([a-z_]+)`/g)].map(([, label = '']) => label),
    buckets: from === undefined || to === undefined ? null : [Number(from), Number(to)],
  }
}

const contract = requirements
  .filter(({ id, key }) => id.startsWith('D3.metric.') && !EVERYWHERE.has(key))
  .map(({ key, text }) => seriesOf(key, text))

test('every series has the type, labels and buckets of the contract', () => {
  // Shows D3.exposition.tables.
  assert.ok(contract.length > 100)
  for (const { name, type, labels, buckets } of contract) {
    const row = rows.get(name) ?? assert.fail(`no table has ${name}`)
    assert.deepEqual([row.type, Object.keys(row.labels)], [type, labels], name)
    if (buckets !== null) assert.deepEqual([row.buckets?.[0], row.buckets?.at(-1)], buckets, name)
  }
})

test('every label that the contract closes has those values, and no others', () => {
  // Shows D3.label.plat_gateway_rego_evaluations_total.outcome.ok, D3.label.plat_gateway_rego_evaluations_total.outcome.error,
  // D3.label.plat_gateway_arg_captures_total.outcome.written, D3.label.plat_gateway_arg_captures_total.outcome.dropped,
  // D3.label.plat_gateway_arg_captures_total.outcome.failed, D3.label.plat_gateway_dlp_hits_total.direction.arguments,
  // D3.label.plat_gateway_dlp_hits_total.direction.response, D3.label.plat_gateway_revocations_active.source.breakglass,
  // D3.label.plat_gateway_revocations_active.source.file, D3.label.plat_gateway_model_tokens_total.kind.prompt,
  // D3.label.plat_gateway_model_tokens_total.kind.completion, D3.label.plat_gateway_offline_denials_total.rule.spool-full,
  // D3.label.plat_gateway_offline_denials_total.rule.revocation-stale,
  // D3.label.plat_gateway_offline_denials_total.rule.approval-offline, D3.label.plat_license_state.state.none,
  // D3.label.plat_license_state.state.invalid, D3.label.plat_license_state.state.valid, D3.label.plat_license_state.state.grace,
  // D3.label.plat_license_state.state.expired, D3.label.plat_session_ready_seconds.mode.claim,
  // D3.label.plat_session_ready_seconds.mode.direct, D3.label.plat_session_outcomes_total.result.Succeeded,
  // D3.label.plat_session_outcomes_total.result.Failed, D3.label.plat_session_outcomes_total.result.Expired,
  // D3.label.plat_session_outcomes_total.result.Revoked, D3.label.plat_session_outcomes_total.result.Cancelled,
  // D3.label.plat_billable_nodes.period.current, D3.label.plat_billable_nodes.period.day,
  // D3.label.plat_billable_nodes.period.month.
  const closed = new Map<string, string[]>()
  for (const { id, key } of requirements.filter((one) => one.id.startsWith('D3.label.'))) {
    const [series, label, value] = key.split('.')
    const name = `${series}.${label}`
    closed.set(name, [...(closed.get(name) ?? []), value ?? assert.fail(id)])
  }
  assert.ok(closed.size >= 10)
  for (const [name, values] of closed) {
    const [series = '', label = ''] = name.split('.')
    const actual: unknown = rows.get(series)?.labels[label]
    assert.ok(Array.isArray(actual), `${name} has no closed values`)
    assert.deepEqual(actual.toSorted(), values.toSorted(), name)
  }
})
