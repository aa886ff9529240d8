import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { attestationMetrics } from '@plat/attestation/metrics'
import { gatewayMetricRows } from '@plat/gateway/metric-rows'
import { operatorMetrics } from '@plat/operator/metrics'
import { requirements } from './requirements.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Of kube-state-metrics. */
const OTHERS = new Set(['kube_pod_status_ready'])

const rules = readFileSync(path.join(ROOT, 'deploy/alerts/plat.rules.yaml'), 'utf8')
const expressions = rules.replaceAll(/^ +(?:summary|description|runbook_url):.*$/gm, '')
/** Without what a histogram adds to the name of its series. */
const read = new Set(
  [...expressions.matchAll(/\b(?:plat|kube)_[a-z_]+/g)].map(([name]) => name.replace(/_(?:bucket|count|sum)$/, '')),
)

test('every series that an alert reads is one of the contract', () => {
  const keys = requirements.filter(({ id }) => id.startsWith('D3.metric.')).map(({ key }) => key)
  const known = new Set([...keys, ...OTHERS])
  assert.deepEqual(
    [...read].filter((name) => !known.has(name)),
    [],
  )
  assert.ok(read.size > 20)
})

test('every series that an alert reads is in the table of a component', () => {
  const rows = [...gatewayMetricRows, ...operatorMetrics, ...attestationMetrics]
  const served = new Set(['plat_build_info', ...OTHERS, ...rows.map(({ name }) => name)])
  assert.deepEqual(
    [...read].filter((name) => !served.has(name)),
    [],
  )
})

test('no runbook says that its alert waits for a series', () => {
  assert.doesNotMatch(readFileSync(path.join(ROOT, 'docs/runbooks.md'), 'utf8'), /Not served yet/)
})
