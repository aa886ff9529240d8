import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { REPOSITORY } from '../reference.ts'
import { histogram, nameOf, RULES_FILE, type Trial, tryAlert } from '../testing/alert-trial.ts'
import { fetchPromtool, type Promtool } from '../testing/promtool.ts'
import { alertsOf, readAlerts } from './alerts.ts'

/** Trials of the rules: series on which each fires, and series that are just not enough, by Prometheus' own evaluation. @table */

const RULES = path.join(REPOSITORY, 'deploy/alerts/plat.rules.yaml')
const groups = readAlerts(REPOSITORY)
const tried = new Set<string>()

let promtool: Promtool

before(() => {
  promtool = fetchPromtool()
  copyFileSync(RULES, path.join(promtool.dir, RULES_FILE))
})

after(() => promtool?.remove())

/** Has it tried, and notes that it was. */
const tries = (alert: string, trial: Trial) => void tried.add(tryAlert(promtool, groups, alert, trial))

test('Prometheus accepts the rules', () => {
  assert.match(promtool.run(['check', 'rules', RULES]), /SUCCESS: 38 rules found/)
})

for (const mode of ['claim', 'direct'] as const) {
  test(`SessionReadySLO fires when one in ten sessions is slow to be ready, mode ${mode}`, () => {
    // Shows D3.alert.SessionReadySLO.claim and D3.alert.SessionReadySLO.direct.
    const seconds = (counts: readonly [number, number], other = mode) =>
      histogram('plat_session_ready_seconds', `tier="tier-1",mode="${other}",`, 5, counts)
    const whose = mode === 'claim' ? 'that claimed a warm pod' : 'that started a pod'
    tries('SessionReadySLO', {
      at: '15m30s',
      notYet: '15m20s',
      labels: { severity: 'warning', mode, tier: 'tier-1' },
      says: `One in ten sessions of tier tier-1 ${whose} took longer than 7.5s to be ready.`,
      on: [seconds([8, 10])],
      notOn: [seconds([9, 10])],
    })
  })
}

test('SessionFailureRate fires when more than a quarter of at least five sessions failed', () => {
  // Shows D3.alert.SessionFailureRate.
  const ended = (failed: number, succeeded: number) => ({
    'plat_session_outcomes_total{tier="tier-1",result="Failed"}': `_ _ _ _ ${failed}x100`,
    'plat_session_outcomes_total{tier="tier-1",result="Succeeded"}': `_ _ _ _ ${succeeded}x100`,
  })
  tries('SessionFailureRate', {
    at: '17m',
    notYet: '16m50s',
    labels: { severity: 'warning' },
    says: 'Of the sessions that ended in the last half hour 40% failed.',
    on: [ended(2, 3)],
    notOn: [ended(2, 6), ended(2, 2)],
  })
})

test('WarmPoolEmpty fires when no warm pod of a tier is ready', () => {
  // Shows D3.alert.WarmPoolEmpty.
  tries('WarmPoolEmpty', {
    at: '10m',
    notYet: '9m50s',
    labels: { severity: 'warning', tier: 'tier-2' },
    says: 'No warm pod of tier tier-2 is ready, so its sessions wait for a pod to start.',
    on: [{ 'plat_warm_pool_ready{tier="tier-2"}': '0x100' }],
    notOn: [{ 'plat_warm_pool_ready{tier="tier-2"}': '1x100' }],
  })
})

test('TokenMintSlow fires when one token in a hundred takes longer than a second', () => {
  // Shows D3.alert.TokenMintSlow.
  tries('TokenMintSlow', {
    at: '15m30s',
    notYet: '15m20s',
    labels: { severity: 'warning' },
    says: 'One in a hundred session tokens took longer than 1.5s to mint.',
    on: [histogram('plat_token_mint_seconds', '', 1, [98, 100])],
    notOn: [histogram('plat_token_mint_seconds', '', 1, [99, 100])],
  })
})

test('OperatorReconcileErrors fires on errors that are not conflicts', () => {
  // Shows D3.alert.OperatorReconcileErrors.
  const errors = (reason: string, each: number) => ({
    [`plat_reconcile_errors_total{controller="agents",reason="${reason}"}`]: `0+${each}x200`,
  })
  tries('OperatorReconcileErrors', {
    at: '21m',
    notYet: '15m',
    labels: { severity: 'warning' },
    says: 'The operator meets 0.10 errors a second that are not conflicts.',
    on: [errors('Invalid', 3)],
    notOn: [errors('Invalid', 1.49), errors('Conflict', 300)],
  })
})

test('ConfigMapNearLimit fires when a rendered ConfigMap holds more than 800 KiB', () => {
  // Shows D3.alert.ConfigMapNearLimit.
  const bytes = (value: number) => ({ 'plat_rendered_configmap_bytes{name="plat-policies"}': `${value}x100` })
  tries('ConfigMapNearLimit', {
    at: '5m',
    notYet: '4m50s',
    labels: { severity: 'warning', name: 'plat-policies' },
    says: 'ConfigMap plat-policies holds 800kiB; one over 1 MiB is refused.',
    on: [bytes(819_201)],
    notOn: [bytes(819_200)],
  })
})

test('GatewayAuditCommitSlow fires when one commit in a hundred takes longer than 50 ms', () => {
  // Shows D3.alert.GatewayAuditCommitSlow.
  const seconds = (counts: readonly [number, number]) =>
    histogram('plat_gateway_audit_commit_seconds', 'instance="a",', 0.05, counts)
  tries('GatewayAuditCommitSlow', {
    at: '10m30s',
    notYet: '10m20s',
    labels: { severity: 'warning', instance: 'a' },
    says: 'One in a hundred commits of the ledger on a took longer than 75ms.',
    on: [seconds([98, 100])],
    notOn: [seconds([99, 100])],
  })
})

test('AuditLedgerUnavailable fires on the first failed append', () => {
  // Shows D3.alert.AuditLedgerUnavailable.
  const errors = (values: string) => ({ 'plat_gateway_audit_errors_total{instance="a"}': values })
  tries('AuditLedgerUnavailable', {
    at: '10m',
    labels: { severity: 'critical', instance: 'a' },
    says: 'The gateway a failed to append to its audit ledger.',
    on: [errors('0x18 1x20'), errors('_x18 1x20')],
    notOn: [errors('0x40'), errors('7x40'), errors('_x18 0x20')],
  })
})

test('GatewayNotReady fires when no pod of the gateway is ready, and when none is there', () => {
  // Shows D3.alert.GatewayNotReady.
  const pods = (...ready: readonly number[]) =>
    Object.fromEntries(
      ready.map((value, at) => [
        `kube_pod_status_ready{namespace="plat-system",pod="plat-gateway-${at}",condition="true"}`,
        `${value}x40`,
      ]),
    )
  const built = { 'plat_build_info{component="gateway"}': '1x40' }
  const other = { 'kube_pod_status_ready{namespace="plat-system",pod="plat-identity-0",condition="true"}': '1x40' }
  const trial = {
    at: '5m',
    notYet: '4m50s',
    says: 'No pod of the gateway is ready, so no agent can call a tool or a model.',
  }
  tries('GatewayNotReady', {
    ...trial,
    labels: { severity: 'critical' },
    on: [{ ...pods(0, 0), ...built, ...other }],
    notOn: [{ ...pods(0, 1), ...built }, built],
  })
  tries('GatewayNotReady', {
    ...trial,
    labels: { severity: 'critical', component: 'gateway' },
    on: [{}, { 'plat_build_info{component="identity"}': '1x40' }],
    notOn: [built],
  })
})

test('ApprovalsBacklog fires when more than fifty calls wait', () => {
  // Shows D3.alert.ApprovalsBacklog.
  const pending = (value: number) => ({
    'plat_gateway_approvals_pending{instance="a"}': `${value}x60`,
    'plat_gateway_approvals_pending{instance="b"}': `${value}x60`,
  })
  tries('ApprovalsBacklog', {
    at: '10m',
    notYet: '9m50s',
    labels: { severity: 'warning' },
    says: 'There are 51 calls that wait for an approval.',
    on: [pending(51)],
    notOn: [pending(50)],
  })
})

test('RevocationListUnavailable fires ten seconds after the gateway began to deny', () => {
  // Shows D3.alert.RevocationListUnavailable.
  const ok = (value: number) => ({ 'plat_gateway_revocation_list_ok{instance="a"}': `${value}x20` })
  tries('RevocationListUnavailable', {
    at: '10s',
    notYet: '0s',
    labels: { severity: 'critical', instance: 'a' },
    says: 'The gateway a cannot read its revocation list and denies every call.',
    on: [ok(0)],
    notOn: [ok(1)],
  })
})

test('RevocationLag fires when the revocations were last read more than ten seconds ago', () => {
  // Shows D3.alert.RevocationLag.
  const read = (configmap: string, values: string) => ({
    [`plat_gateway_configsync_last_success_timestamp_seconds{configmap="${configmap}",instance="a"}`]: values,
  })
  tries('RevocationLag', {
    interval: '10s',
    at: '1m20s',
    notYet: '1m10s',
    labels: { severity: 'critical', configmap: 'plat-revocations', instance: 'a' },
    says: 'The gateway a last read the revocations 1m 20s ago.',
    on: [read('plat-revocations', '0x100')],
    notOn: [read('plat-revocations', '-10+10x100'), read('plat-policies', '0x100')],
  })
})

test('ConfigSyncFailures fires when the policies could not be loaded', () => {
  // Shows D3.alert.ConfigSyncFailures.
  const loads = (result: string, values: string) => ({
    [`plat_gateway_policy_reloads_total{instance="a",result="${result}"}`]: values,
  })
  tries('ConfigSyncFailures', {
    at: '7m',
    notYet: '6m50s',
    labels: { severity: 'warning', instance: 'a', result: 'error' },
    says: 'The gateway a could not load the policy file; the policies before it stay in force.',
    on: [loads('error', '_ _ _ _ 1x40'), loads('error', '0 0 0 0 1x40')],
    notOn: [loads('ok', '0+1x40'), loads('error', '0x40')],
  })
})

test('GatewayDenyRateHigh fires when more than half of enough calls are denied', () => {
  // Shows D3.alert.GatewayDenyRateHigh.
  const decided = (denied: number, allowed: number) => ({
    'plat_gateway_decisions_total{action="deny",server="notes"}': `0+${denied}x200`,
    'plat_gateway_decisions_total{action="allow",server="notes"}': `0+${allowed}x200`,
  })
  tries('GatewayDenyRateHigh', {
    at: '21m',
    notYet: '15m',
    labels: { severity: 'warning' },
    says: 'The gateway denies 60% of the calls that it decides.',
    on: [decided(3, 2)],
    notOn: [decided(3, 3), decided(1.4, 0)],
  })
})

test('GatewayUpstreamErrors fires when more than one call in twenty to a server fails', () => {
  // Shows D3.alert.GatewayUpstreamErrors.
  const trips = (failed: number) => ({
    'plat_gateway_upstream_errors_total{server="notes"}': `0+${failed}x200`,
    'plat_gateway_upstream_latency_seconds_count{server="notes"}': '0+100x200',
    'plat_gateway_upstream_latency_seconds_count{server="other"}': '0+100x200',
  })
  tries('GatewayUpstreamErrors', {
    at: '10m30s',
    notYet: '10m20s',
    labels: { severity: 'warning', server: 'notes' },
    says: 'Of the calls to notes 6% fail.',
    on: [trips(6)],
    notOn: [trips(4.9)],
  })
})

test('BudgetExceeded fires on the first call that a budget denies', () => {
  // Shows D3.alert.BudgetExceeded.
  const denied = (values: string) => ({ 'plat_gateway_budget_denied_total{instance="a",scope="day"}': values })
  tries('BudgetExceeded', {
    at: '20m',
    labels: { severity: 'info', instance: 'a', scope: 'day' },
    says: 'Calls were denied because a budget of scope day is spent.',
    on: [denied('_x38 1x20'), denied('4x38 5x20')],
    notOn: [{}, denied('4x60')],
  })
})

test('ModelCircuitOpen fires while an endpoint is left out', () => {
  // Shows D3.alert.ModelCircuitOpen.
  const open = (value: number) => ({ 'plat_gateway_model_circuits_open{instance="a"}': `${value}x60` })
  tries('ModelCircuitOpen', {
    at: '10m',
    notYet: '9m50s',
    labels: { severity: 'warning', instance: 'a' },
    says: 'The gateway a has left out 1 model endpoints since they failed.',
    on: [open(1)],
    notOn: [open(0)],
  })
})

test('AuditSinkLag fires when a sink is more than a thousand records behind', () => {
  // Shows D3.alert.AuditSinkLag.
  const lag = (value: number) => ({ 'plat_gateway_audit_sink_lag{instance="a",sink="soc"}': `${value}x100` })
  tries('AuditSinkLag', {
    at: '15m',
    notYet: '14m50s',
    labels: { severity: 'warning', instance: 'a', sink: 'soc' },
    says: 'Sink soc of a is 1001 records behind the ledger.',
    on: [lag(1001)],
    notOn: [lag(1000)],
  })
})

test('AuditRetentionBlocked fires when a segment has waited for six hours', () => {
  // Shows D3.alert.AuditRetentionBlocked.
  const waiting = (value: number) => ({
    'plat_gateway_audit_segments_waiting{instance="a",reason="sinks"}': `${value}x800`,
  })
  tries('AuditRetentionBlocked', {
    at: '6h',
    notYet: '5h59m',
    labels: { severity: 'warning', instance: 'a', reason: 'sinks' },
    says: 'On a 2 segments of the ledger are due to leave and wait for sinks.',
    on: [waiting(2)],
    notOn: [waiting(0)],
  })
})

test('AuditRetentionFailing fires when compression or retention has failed for an hour', () => {
  // Shows D3.alert.AuditRetentionFailing.
  const failures = (kind: string, values: string) => ({
    [`plat_gateway_audit_${kind}_failures_total{instance="a"}`]: values,
  })
  tries('AuditRetentionFailing', {
    at: '90m',
    labels: { severity: 'warning', instance: 'a' },
    says: 'The gateway a fails to compress, archive or delete sealed segments of its ledger.',
    on: [failures('retention', '0+1x400'), failures('compression', '0+1x400')],
    notOn: [failures('retention', '0x400'), failures('retention', '7x400')],
  })
})

test('KeyServiceFailing fires when a key service has failed for ten minutes', () => {
  // Shows D3.alert.KeyServiceFailing.
  const failures = (values: string) => ({
    'plat_gateway_key_service_failures_total{instance="a",service="kms",operation="sign",reason="unavailable"}': values,
  })
  tries('KeyServiceFailing', {
    at: '30m',
    notYet: '9m',
    labels: { severity: 'warning', instance: 'a', service: 'kms', operation: 'sign', reason: 'unavailable' },
    says: 'On a kms fails to sign (unavailable).',
    on: [failures('0+1x400')],
    notOn: [failures('0x400'), failures('7x400')],
  })
})

test('ClientLedgerUnverified fires when the ledger of a client has not verified for five minutes', () => {
  // Shows D3.alert.ClientLedgerUnverified.
  const verified = (values: string) => ({ 'plat_gateway_client_audit_verified{instance="a",anchor="ci"}': values })
  tries('ClientLedgerUnverified', {
    at: '6m',
    notYet: '4m',
    labels: { severity: 'critical', instance: 'a', anchor: 'ci' },
    says: 'The gateway a has found a fault in the ledger of client ci. The log and an alert record name it.',
    on: [verified('0x100')],
    notOn: [verified('1x100')],
  })
})

test('SandboxLedgerUnverified fires when the ledger of the sandbox daemon has not verified for five minutes', () => {
  // Shows D3.alert.SandboxLedgerUnverified.
  const verified = (values: string) => ({ 'plat_gateway_sbxd_audit_verified{instance="a"}': values })
  tries('SandboxLedgerUnverified', {
    at: '6m',
    notYet: '4m',
    labels: { severity: 'critical', instance: 'a' },
    says: 'The gateway a has found a fault in the ledger of its sandbox daemon. The log and an alert record name it.',
    on: [verified('0x100')],
    notOn: [verified('1x100')],
  })
})

test('SandboxMirrorFailing fires when decisions have not reached the sandbox daemon for a quarter of an hour', () => {
  // Shows D3.alert.SandboxMirrorFailing.
  const decisions = (outcome: string, values: string) => ({
    [`plat_gateway_sbxd_mirror_total{instance="a",outcome="${outcome}"}`]: values,
  })
  tries('SandboxMirrorFailing', {
    at: '30m',
    notYet: '14m',
    labels: { severity: 'warning', instance: 'a', outcome: 'dropped' },
    says: 'On a 20 decisions of ten minutes did not reach the sandbox daemon (dropped).',
    on: [decisions('dropped', '0+1x400')],
    notOn: [decisions('ok', '0+1x400'), decisions('dropped', '7x400')],
  })
})

test('EngineLedgerUnverified fires when a ledger of the context engine has not verified for five minutes', () => {
  // Shows D3.alert.EngineLedgerUnverified.
  const verified = (values: string) => ({ 'plat_gateway_ctxengine_audit_verified{instance="a",anchor="e"}': values })
  tries('EngineLedgerUnverified', {
    at: '6m',
    notYet: '4m',
    labels: { severity: 'critical', instance: 'a', anchor: 'e' },
    says: 'The gateway a has found a fault in the ledger e of its context engine. The log and an alert record name it.',
    on: [verified('0x100')],
    notOn: [verified('1x100')],
  })
})

test('ContextEngineFailing fires when operations on contexts have failed for ten minutes', () => {
  // Shows D3.alert.ContextEngineFailing.
  const failed = (op: string, values: string) => ({
    [`plat_gateway_ctxengine_context_ops_total{instance="a",op="${op}"}`]: values,
  })
  tries('ContextEngineFailing', {
    at: '30m',
    notYet: '9m',
    labels: { severity: 'warning', instance: 'a', op: 'error' },
    says: 'On a 20 operations on contexts failed within ten minutes.',
    on: [failed('error', '0+1x400')],
    notOn: [failed('create', '0+1x400'), failed('error', '7x400')],
  })
})

test('TenantsFileRefused fires when a gateway has refused its list of tenants for five minutes', () => {
  // Shows D3.alert.TenantsFileRefused.
  const isUsed = (values: string) => ({ 'plat_gateway_tenants_file_ok{instance="a"}': values })
  tries('TenantsFileRefused', {
    at: '30m',
    notYet: '4m',
    labels: { severity: 'warning', instance: 'a' },
    says: 'The gateway a refuses tenantsFile and keeps the tenants that it read before. The log names each problem.',
    on: [isUsed('0x400')],
    notOn: [isUsed('1x400'), isUsed('0x9 1x400')],
  })
})

test('TenantCrossings fires when calls have been refused at boundaries of tenants for fifteen minutes', () => {
  // Shows D3.alert.TenantCrossings.
  const crossed = (values: string) => ({ 'plat_gateway_tenant_crossings_total{instance="a",by="target"}': values })
  tries('TenantCrossings', {
    at: '40m',
    notYet: '14m',
    labels: { severity: 'warning', instance: 'a' },
    says: 'On a 20 calls that would cross a boundary of tenants were refused within ten minutes.',
    on: [crossed('0+1x400')],
    notOn: [crossed('7x400')],
  })
})

test('AuditSegmentDamaged fires as soon as a segment is found damaged', () => {
  // Shows D3.alert.AuditSegmentDamaged.
  const damaged = (values: string) => ({ 'plat_gateway_audit_damaged_segments{instance="a"}': values })
  tries('AuditSegmentDamaged', {
    at: '2m',
    notYet: '50s',
    labels: { severity: 'critical', instance: 'a' },
    says: 'The gateway a has found 2 segments of its ledger that are not what was written. The log names them.',
    on: [damaged('0x1 2x30')],
    notOn: [damaged('0x40'), {}],
  })
})

test('AuditCopyBehind fires when a copy has lacked records for longer than the threshold', () => {
  // Shows D3.alert.AuditCopyBehind.
  const behind = (values: string) => ({ 'plat_gateway_audit_copy_lag_seconds{instance="a"}': values })
  tries('AuditCopyBehind', {
    at: '12m',
    notYet: '4m',
    labels: { severity: 'warning', instance: 'a' },
    says: 'The copies of the ledgers of a have lacked durable records for 12m 0s.',
    on: [behind('0+30x60')],
    notOn: [behind('300x60'), {}],
  })
})

test('AuditCopyStuck fires when a ledger cannot be copied until somebody acts', () => {
  // Shows D3.alert.AuditCopyStuck.
  const stuck = (values: string) => ({ 'plat_gateway_audit_copies_stuck{instance="a"}': values })
  tries('AuditCopyStuck', {
    at: '4m',
    notYet: '90s',
    labels: { severity: 'critical', instance: 'a' },
    says: 'On a 1 ledgers cannot be copied until somebody acts. The log has the reason.',
    on: [stuck('0x1 1x30')],
    notOn: [stuck('0x40'), {}],
  })
})

test('AuditCopyDamaged fires as soon as a copy is found damaged', () => {
  // Shows D3.alert.AuditCopyDamaged.
  const damaged = (values: string) => ({ 'plat_gateway_audit_copies_damaged{instance="a"}': values })
  tries('AuditCopyDamaged', {
    at: '2m',
    notYet: '50s',
    labels: { severity: 'critical', instance: 'a' },
    says: 'The gateway a has found 2 copies of the ledgers of other replicas that are not what was written.',
    on: [damaged('0x1 2x30')],
    notOn: [damaged('0x40'), {}],
  })
})

test('AttestationFailureRate fires when more than one attestation in ten fails', () => {
  // Shows D3.alert.AttestationFailureRate.
  const failed = (each: number) => ({ 'plat_attest_failure_total{reason="evidence"}': `0+${each}x200` })
  const succeeded = (each: number) => ({ plat_attest_success_total: `0+${each}x200` })
  const trial = { at: '10m30s', notYet: '10m20s', labels: { severity: 'warning' } }
  tries('AttestationFailureRate', {
    ...trial,
    says: 'Of the attestations 20% fail.',
    on: [{ ...failed(2), ...succeeded(8) }],
    notOn: [{ ...failed(0.99), ...succeeded(9) }, succeeded(1)],
  })
  tries('AttestationFailureRate', {
    ...trial,
    says: 'Of the attestations 100% fail.',
    on: [failed(2)],
    notOn: [{}],
  })
})

test('LicenseExpiring warns within thirty days and is critical within seven', () => {
  // Shows D3.alert.LicenseExpiring.
  const left = (days: number) => ({
    'plat_license_days_left{component="gateway"}': `${days}x200`,
    'plat_license_days_left{component="operator"}': `${days}x200`,
  })
  const trial = { at: '1h', notYet: '59m50s' }
  tries('LicenseExpiring', {
    ...trial,
    labels: { severity: 'warning' },
    says: 'The licence has 29 days left.',
    on: [left(29)],
    notOn: [left(30)],
  })
  tries('LicenseExpiring', {
    ...trial,
    labels: { severity: 'critical' },
    says: 'The licence has 6 days left; below 0 it is in its grace or over.',
    on: [left(6)],
    notOn: [{}],
  })
})

test('LicenseNodeLimitExceeded fires when the month had more nodes than a limited licence covers', () => {
  // Shows D3.alert.LicenseNodeLimitExceeded.
  const nodes = (month: number, limit: number) => ({
    'plat_billable_nodes{period="month"}': `${month}x200`,
    'plat_billable_nodes{period="current"}': '99x200',
    plat_license_node_limit: `${limit}x200`,
  })
  tries('LicenseNodeLimitExceeded', {
    at: '1h',
    notYet: '59m50s',
    labels: { severity: 'info' },
    says: 'This month up to 11 nodes ran sandboxes at once, more than the licence covers.',
    on: [nodes(11, 10)],
    notOn: [nodes(10, 10), nodes(11, 0)],
  })
})

test('every rule was tried', () => {
  assert.deepEqual(
    alertsOf(groups)
      .map(nameOf)
      .filter((name) => !tried.has(name)),
    [],
  )
})
