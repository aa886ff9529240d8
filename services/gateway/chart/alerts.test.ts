import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { LabelValues, MetricRow } from '@plat/metrics'
import { parse } from 'yaml'
import { gatewayMetricRows } from '../metric-rows.ts'
import { REPOSITORY } from '../reference.ts'
import { alertsOf, readAlerts, rulesFile, thresholdsOf } from './alerts.ts'

const groups = readAlerts(REPOSITORY)
const alerts = alertsOf(groups)
const rows: readonly MetricRow[] = gatewayMetricRows

/** The table of docs/spec/gateway.md: group, alert, severity, and how long it must hold. */
const DOCUMENTED = `
  sessions SessionReadySLO warning 15m
  sessions SessionReadySLO warning 15m
  sessions SessionFailureRate warning 15m
  sessions WarmPoolEmpty warning 10m
  sessions TokenMintSlow warning 15m
  operator OperatorReconcileErrors warning 15m
  operator ConfigMapNearLimit warning 5m
  gateway GatewayAuditCommitSlow warning 10m
  gateway AuditLedgerUnavailable critical
  gateway GatewayNotReady critical 5m
  gateway ApprovalsBacklog warning 10m
  gateway RevocationListUnavailable critical 10s
  gateway RevocationLag critical 1m
  gateway ConfigSyncFailures warning 5m
  gateway GatewayDenyRateHigh warning 15m
  gateway GatewayUpstreamErrors warning 10m
  gateway BudgetExceeded info
  gateway ModelCircuitOpen warning 10m
  evidence AuditSinkLag warning 15m
  evidence AuditRetentionBlocked warning 6h
  evidence AuditRetentionFailing warning 1h
  evidence KeyServiceFailing warning 10m
  evidence AuditSegmentDamaged critical
  evidence AuditCopyBehind warning 5m
  evidence AuditCopyStuck critical 1m
  evidence AuditCopyDamaged critical
  evidence ClientLedgerUnverified critical 5m
  evidence SandboxLedgerUnverified critical 5m
  evidence SandboxMirrorFailing warning 15m
  evidence EngineLedgerUnverified critical 5m
  evidence ContextEngineFailing warning 10m
  evidence TenantsFileRefused warning 5m
  evidence TenantCrossings warning 15m
  evidence AttestationFailureRate warning 10m
  license LicenseExpiring warning 1h
  license LicenseExpiring critical 1h
  license LicenseNodeLimitExceeded info 1h`

test('groups, names, severities and times are those of the contract', () => {
  const lines = groups.flatMap((group) =>
    alertsOf([group]).map((rule) => [group.name, rule.alert, rule.severity, rule.for].filter(Boolean).join(' ')),
  )
  assert.deepEqual(lines, DOCUMENTED.trim().split(/\n\s*/))
})

test('every threshold of the contract is a default, and its expression uses it by name', () => {
  assert.deepEqual(thresholdsOf(groups), {
    SessionReadySLO: { seconds: 5 },
    AuditCopyBehind: { seconds: 300 },
    SessionFailureRate: { share: 0.25, sessions: 5 },
    TokenMintSlow: { seconds: 1 },
    OperatorReconcileErrors: { perSecond: 0.05 },
    ConfigMapNearLimit: { bytes: 819_200 },
    GatewayAuditCommitSlow: { seconds: 0.05 },
    ApprovalsBacklog: { approvals: 50 },
    RevocationLag: { seconds: 10 },
    GatewayDenyRateHigh: { share: 0.5, perSecond: 0.05 },
    GatewayUpstreamErrors: { share: 0.05 },
    ModelCircuitOpen: { circuits: 0 },
    AuditSinkLag: { records: 1000 },
    AuditRetentionBlocked: { segments: 0 },
    AttestationFailureRate: { share: 0.1 },
    LicenseExpiring: { days: 30, criticalDays: 7 },
  })
  for (const { alert, expr, thresholds = {} } of alerts) {
    const named = [...expr.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name)
    const known = new Set([...Object.keys(thresholdsOf(groups)[alert] ?? {}), 'namespace', 'gateway'])
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
      alert,
    )
    const all = alerts.filter((one) => one.alert === alert).map((one) => one.expr)
    for (const name of Object.keys(thresholds))
      assert.ok(
        all.some((text) => text.includes(`\${${name}}`)),
        `${alert} ${name}`,
      )
  }
})

test('two rules of one alert have the same defaults: there is one value for both', () => {
  for (const { alert, thresholds = {} } of alerts)
    assert.deepEqual(thresholdsOf(groups)[alert] ?? {}, thresholds, alert)
})

test('every alert links to its section of the runbooks', () => {
  // Shows D3.alert.runbookLinks.
  const page = readFileSync(path.join(REPOSITORY, 'docs/runbooks.md'), 'utf8')
  const anchors = new Set([...page.matchAll(/^## (\w+)$/gm)].map(([, heading = '']) => heading.toLowerCase()))
  const { groups: written } = parse(rulesFile(groups))
  const links = written.flatMap(({ rules }: { rules: { annotations?: { runbook_url: string } }[] }) =>
    rules.flatMap(({ annotations }) => (annotations === undefined ? [] : [annotations.runbook_url])),
  )
  assert.deepEqual(
    links,
    alerts.map(({ alert }) => `docs/runbooks.md#${alert.toLowerCase()}`),
  )
  assert.deepEqual([...anchors].sort(), [...new Set(alerts.map(({ alert }) => alert.toLowerCase()))].sort())
})

test('series of the gateway have the labels and can have the values that rules use', () => {
  let queries = 0
  for (const { expr } of groups.flatMap(({ rules }) => rules)) {
    for (const [, name = '', matchers = ''] of expr.matchAll(/\b(plat_gateway_[a-z0-9_]+)(?:\{([^}]*)\})?/g)) {
      const row = rows.find((one) => one.name === name.replace(/_(?:bucket|count|sum)$/, '')) ?? null
      if (row === null) continue
      for (const [, label = '', value = ''] of matchers.matchAll(/(\w+)(?:=~|!=|=)"([^"]*)"/g)) {
        queries++
        const values: LabelValues | undefined = row.labels[label]
        assert.ok(values !== undefined, `${name} has no label ${label}`)
        if (Array.isArray(values)) assert.ok(values.includes(value), `${name}{${label}} is never ${value}`)
      }
    }
  }
  assert.ok(queries > 0)
})

test('a threshold on a histogram is a bound of it, so that nothing is guessed between two', () => {
  const row = rows.find(({ name }) => name === 'plat_gateway_audit_commit_seconds')
  assert.ok(row?.buckets?.includes(0.05))
})
