import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildInfo } from '@plat/core'
import type { MetricRow } from '@plat/metrics'
import { gatewayMetricRows } from './metric-rows.ts'
import { createGatewayMetrics } from './metrics.ts'

const build = buildInfo('gateway')
const rows: readonly MetricRow[] = gatewayMetricRows

/** Series that docs/spec/gateway.md has only where something is configured, by the area or the name that says so. */
const OPTIONAL_AREAS = new Set([
  'Transparency log',
  'Offline edge',
  'Collector',
  'OpenTelemetry',
  'A2A and sandbox tools',
  'Integrations',
  'Tenants',
])
const OPTIONAL = /audit_signed_checkpoint_seq|audit_sink_|retention_below_ai_act|config_bundle|configsync|token_vault_/

/** The configuration that enables each feature of the table. */
const SWITCHED_ON: Readonly<Record<string, object>> = {
  auditCheckpointKey: { auditCheckpointKey: 'file:///key.pem' },
  auditSinks: { auditSinks: [{}] },
  sovereigntyPolicyFile: { sovereigntyPolicyFile: '/sovereignty.json' },
  clientAudit: { clientAudit: { anchors: [{}] } },
  sbxd: { sbxd: { mirrorDecisions: true, anchorIntervalSeconds: 0 } },
  ctxengine: { ctxengine: { upstream: 'http://127.0.0.1:9/v1', auditAnchors: [] } },
  a2a: { a2a: { routesFile: '/agents.json' } },
  tenantsFile: { tenantsFile: '/tenants.json' },
}

const seriesOf = (config: object) => {
  const names = createGatewayMetrics(build, config)
    .expose()
    .matchAll(/^# TYPE (\S+) /gm)
  return new Set(Array.from(names, ([, name = '']) => name))
}

test('series of optional features exist only when the feature is configured', () => {
  // Shows D3.exposition.optionalFeaturesOnly.
  const always = seriesOf({})
  for (const { name, feature, area } of rows) {
    const optional = OPTIONAL_AREAS.has(area) || OPTIONAL.test(name)
    assert.equal(feature !== '', optional, `${name}: feature ${JSON.stringify(feature)}`)
    assert.equal(always.has(name), !optional, name)
  }
  for (const feature of new Set(rows.map((row) => row.feature).filter((one) => one !== ''))) {
    const now = seriesOf(SWITCHED_ON[feature] ?? { [feature]: { enabled: true } })
    for (const row of rows) assert.equal(now.has(row.name), row.feature === feature || always.has(row.name), row.name)
    assert.ok(now.size > always.size, feature)
  }
})
