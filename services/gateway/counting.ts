import type { PoolObservers, PoolOf } from '@plat/core'
import { createPoolMeter } from '@plat/metrics'
import type { AuthMetrics } from './authn/identity/index.ts'
import type { WebParts } from './builtin/web/index.ts'
import type { CapturesParts } from './content/captures/index.ts'
import type { CountHit } from './content/dlp/index.ts'
import type { GuardsParts } from './content/guards/index.ts'
import type { BudgetMetrics } from './decide/budgets/index.ts'
import type { PinsParts } from './decide/pins/index.ts'
import type { createRego, PolicyMetrics } from './decide/policy/index.ts'
import type { ResidencyOptions } from './decide/residency/index.ts'
import type { RevocationMetrics } from './decide/revocations/index.ts'
import type { TaintParts } from './decide/taint/index.ts'
import type { AuditCollectorOptions } from './evidence/audit-collector/index.ts'
import type { SinkMetrics } from './evidence/audit-sinks/index.ts'
import type { OfflineMetrics } from './evidence/offline/index.ts'
import type { OtelParts } from './evidence/otel/index.ts'
import type { AnchorMetrics } from './evidence/transparency/index.ts'
import type { GatewayMetrics } from './metrics.ts'
import type { BundleMetrics } from './operate/config-bundle/bundles.ts'
import type { ConfigSyncMetrics } from './operate/config-sync/index.ts'
import type { SvidOptions } from './operate/listeners/index.ts'
import type { StateBackendOptions } from './operate/state-backend/index.ts'
import type { RunnerMetrics } from './pipeline/index.ts'
import type { AbandonedMetrics } from './planes/mcp/index.ts'
import type { FailoverMetrics } from './planes/model/index.ts'
import type { AgentsOptions } from './targets/a2a/index.ts'
import type { EgressOptions } from './targets/egress/index.ts'
import type { ExecOptions } from './targets/exec/index.ts'
import type { ModelsOptions } from './targets/models/index.ts'
import type { ServersOptions } from './targets/servers/index.ts'

/** The pools that callers share. */
export function poolMetrics(metrics: GatewayMetrics): PoolObservers<PoolOf<'gateway'>> {
  return createPoolMeter(metrics.gauge('plat_gateway_pool_used'), metrics.counter('plat_gateway_pool_refusals_total'))
}

/** What the runner counts, as rows of the metric table. */
export function runnerMetrics(metrics: GatewayMetrics): RunnerMetrics {
  const decisions = metrics.counter('plat_gateway_decisions_total')
  const requests = metrics.counter('plat_gateway_requests_total')
  const latency = metrics.histogram('plat_gateway_upstream_latency_seconds')
  const upstreamErrors = metrics.counter('plat_gateway_upstream_errors_total')
  return {
    decided: (action, server) => decisions.inc({ action, server }),
    answered: (server, method, status) => requests.inc({ server, method, code: status }),
    upstream: (server, seconds) => latency.observe({ server }, seconds),
    upstreamFailed: (server) => upstreamErrors.inc({ server }),
  }
}

/** What sinks of the ledger count. */
export function sinkMetrics(metrics: GatewayMetrics): SinkMetrics {
  const lag = metrics.gauge('plat_gateway_audit_sink_lag')
  const delivered = metrics.counter('plat_gateway_audit_sink_delivered_total')
  const errors = metrics.counter('plat_gateway_audit_sink_errors_total')
  const deadLettered = metrics.counter('plat_gateway_audit_sink_dead_lettered_total')
  return {
    lag: (sink, records) => lag.set({ sink }, records),
    delivered: (sink, records) => delivered.inc({ sink }, records),
    failed: (sink) => errors.inc({ sink }),
    deadLettered: (sink) => deadLettered.inc({ sink }),
  }
}

/** What authentication counts. */
export function authMetrics(metrics: GatewayMetrics): AuthMetrics {
  const proven = metrics.counter('plat_gateway_dpop_requests_total')
  return {
    proven: (outcome) => proven.inc({ outcome }),
    failed: (reason) => metrics.counter('plat_gateway_auth_failures_total').inc({ reason }),
    trustedKeys: (count) => metrics.gauge('plat_gateway_trusted_keys').set({}, count),
  }
}

/** What the check of client certificates counts. */
export function svidMetrics(metrics: GatewayMetrics): Pick<SvidOptions, 'checked'> {
  const checks = metrics.counter('plat_gateway_svid_checks_total')
  return { checked: (result) => checks.inc({ result }) }
}

/** What the registry of servers counts. */
export function serverMetrics(metrics: GatewayMetrics): ServersOptions['metrics'] {
  return { configured: (count) => metrics.gauge('plat_gateway_upstreams_configured').set({}, count) }
}

/** What pins count. */
export function pinMetrics(metrics: GatewayMetrics): PinsParts['metrics'] {
  const events = metrics.counter('plat_gateway_tool_pin_events_total')
  return { event: (server, event) => events.inc({ server, event }) }
}

/** What taint labels count. */
export function taintMetrics(metrics: GatewayMetrics): TaintParts['metrics'] {
  const events = metrics.counter('plat_gateway_taint_events_total')
  const sessions = metrics.gauge('plat_gateway_tainted_sessions')
  sessions.set({}, 0)
  return {
    changed: (op, label) => events.inc({ op, label }),
    sessions: (count) => sessions.set({}, count),
  }
}

/** What captures count. */
export function captureMetrics(metrics: GatewayMetrics): CapturesParts['metrics'] {
  const captures = metrics.counter('plat_gateway_arg_captures_total')
  return { captured: (outcome) => captures.inc({ outcome }) }
}

/** What guards count. */
export function guardMetrics(metrics: GatewayMetrics): GuardsParts['metrics'] {
  const checks = metrics.counter('plat_gateway_guard_checks_total')
  const blocked = metrics.counter('plat_gateway_guard_blocked_total')
  const latency = metrics.summary('plat_gateway_guard_latency_seconds')
  return {
    checked: (guard, target, outcome) => checks.inc({ guard, target, outcome }),
    blocked: (guard, target) => blocked.inc({ guard, target }),
    took: (guard, seconds) => latency.observe({ guard }, seconds),
  }
}

/** What the model routes count. */
export function modelMetrics(metrics: GatewayMetrics): ModelsOptions['metrics'] {
  const requests = metrics.counter('plat_gateway_model_requests_total')
  const tokens = metrics.counter('plat_gateway_model_tokens_total')
  return {
    routes: (count) => metrics.gauge('plat_gateway_model_routes').set({}, count),
    settled(route, { status, usage }) {
      requests.inc({ route, status })
      if (usage === null) return
      tokens.inc({ route, kind: 'prompt' }, usage.prompt)
      tokens.inc({ route, kind: 'completion' }, usage.completion)
    },
    circuitsOpen: (count) => metrics.gauge('plat_gateway_model_circuits_open').set({}, count),
    endpointFailed: (route, endpoint) =>
      metrics.counter('plat_gateway_model_endpoint_failures_total').inc({ route, endpoint }),
  }
}

/** What the choice of an endpoint counts. */
export function failoverMetrics(metrics: GatewayMetrics): FailoverMetrics {
  const failovers = metrics.counter('plat_gateway_model_failovers_total')
  const skips = metrics.counter('plat_gateway_model_endpoint_skipped_total')
  return {
    movedOn: (route, from, to) => failovers.inc({ route, from, to }),
    skipped: (route, endpoint, reason) => skips.inc({ route, endpoint, reason }),
  }
}

/** What MCP calls without a client count. */
export function abandonedMetrics(metrics: GatewayMetrics): AbandonedMetrics {
  const aborted = metrics.counter('plat_gateway_mcp_abandoned_aborted_total')
  return {
    abandoned: (count) => metrics.gauge('plat_gateway_mcp_abandoned_calls').set({}, count),
    abandonedAborted: () => aborted.inc({}),
  }
}

/** What calls between agents count. */
export function agentMetrics(metrics: GatewayMetrics): AgentsOptions['metrics'] {
  const calls = metrics.counter('plat_gateway_a2a_calls_total')
  return {
    routes: (count) => metrics.gauge('plat_gateway_a2a_routes').set({}, count),
    called: (hop, kind, decision) => calls.inc({ hop, kind, decision }),
  }
}

/** What the web tool counts. */
export function webMetrics(metrics: GatewayMetrics): WebParts['counted'] {
  const calls = metrics.counter('plat_gateway_web_calls_total')
  return (tool, result) => calls.inc({ tool, result })
}

/** What anchors in the transparency log count. */
export function anchorMetrics(metrics: GatewayMetrics): AnchorMetrics {
  const seq = metrics.gauge('plat_gateway_audit_anchor_seq')
  const last = metrics.gauge('plat_gateway_audit_anchor_last_success_timestamp_seconds')
  const made = metrics.counter('plat_gateway_audit_anchors_total')
  const errors = metrics.counter('plat_gateway_audit_anchor_errors_total')
  return {
    anchored(upTo, seconds) {
      seq.set({}, upTo)
      last.set({}, seconds)
    },
    made: () => made.inc({}),
    failed: () => errors.inc({}),
  }
}

/** What the egress proxy counts. */
export function egressMetrics(metrics: GatewayMetrics): EgressOptions['counted'] {
  const requests = metrics.counter('plat_gateway_egress_requests_total')
  return (decision) => requests.inc({ kind: 'connect', decision })
}

/** What the code-interpreter proxy counts. */
export function execMetrics(metrics: GatewayMetrics): ExecOptions['counted'] {
  const runs = metrics.counter('plat_gateway_exec_total')
  return (result) => runs.inc({ result })
}

/** What the policies count. */
export function policyMetrics(metrics: GatewayMetrics): PolicyMetrics {
  return {
    loaded(count, generation) {
      metrics.gauge('plat_gateway_policies_loaded').set({}, count)
      metrics.gauge('plat_gateway_policy_revision').set({}, generation)
    },
    reloaded: (result) => metrics.counter('plat_gateway_policy_reloads_total').inc({ result }),
    cedar(available, unavailablePolicies) {
      metrics.gauge('plat_gateway_cedar_available').set({}, Number(available))
      metrics.gauge('plat_gateway_cedar_policies_unavailable').set({}, unavailablePolicies)
    },
    tried: (policy, would) => metrics.counter('plat_gateway_dryrun_decisions_total').inc({ policy, would }),
  }
}

/** What the policy engine beside the gateway counts. */
export function regoMetrics(metrics: GatewayMetrics): Pick<Parameters<typeof createRego>[0], 'evaluated'> {
  const evaluations = metrics.counter('plat_gateway_rego_evaluations_total')
  return { evaluated: (outcome) => evaluations.inc({ outcome }) }
}

/** What the rules of sovereignty say of the audit ledger. */
export function residencyMetrics(metrics: GatewayMetrics): Pick<ResidencyOptions, 'retentionBelowLaw'> {
  const below = metrics.gauge('plat_gateway_audit_retention_below_ai_act')
  return { retentionBelowLaw: (is) => below.set({}, Number(is)) }
}

/** What an edge tells. */
export function offlineMetrics(metrics: GatewayMetrics): OfflineMetrics {
  const errors = metrics.counter('plat_gateway_audit_forward_errors_total')
  const denials = metrics.counter('plat_gateway_offline_denials_total')
  const gauge = (name: ForwardGauge, read: () => number) =>
    metrics.gauge(`plat_gateway_audit_forward_${name}`).from(read)
  return {
    gauges(edge) {
      gauge('unforwarded_records', () => edge.unforwardedRecords())
      gauge('oldest_unforwarded_age_seconds', () => edge.oldestUnforwardedSeconds())
      gauge('last_ack_timestamp_seconds', () => edge.lastAck())
      gauge('acked_seq', () => edge.ackedSeq())
      gauge('spool_bytes', () => edge.spoolBytes())
      gauge('spool_max_bytes', () => edge.spoolMaxBytes())
      gauge('spool_full', () => Number(edge.spoolFull()))
      gauge('connected', () => Number(edge.connected()))
    },
    forwardFailed: () => errors.inc({}),
    denied: (rule) => denials.inc({ rule }),
  }
}

type ForwardGauge =
  | 'unforwarded_records'
  | 'oldest_unforwarded_age_seconds'
  | 'last_ack_timestamp_seconds'
  | 'acked_seq'
  | 'spool_bytes'
  | 'spool_max_bytes'
  | 'spool_full'
  | 'connected'

/** What is counted of ConfigMaps. */
export function configSyncMetrics(metrics: GatewayMetrics): ConfigSyncMetrics {
  const successes = metrics.gauge('plat_gateway_configsync_last_success_timestamp_seconds')
  const errors = metrics.counter('plat_gateway_configsync_errors_total')
  return {
    succeeded: (configmap, at) => successes.set({ configmap }, at),
    failed: (configmap) => errors.inc({ configmap }),
  }
}

/** What configuration bundles count. */
export function bundleMetrics(metrics: GatewayMetrics): BundleMetrics {
  const revision = metrics.gauge('plat_gateway_config_bundle_revision')
  const applied = metrics.counter('plat_gateway_config_bundles_applied_total')
  const refused = metrics.counter('plat_gateway_config_bundles_refused_total')
  return {
    revision: (value) => revision.set({}, value),
    applied: () => applied.inc({}),
    refused: (reason) => refused.inc({ reason }),
  }
}

/** What a collector counts. */
export function collectorMetrics(metrics: GatewayMetrics): AuditCollectorOptions['metrics'] {
  const segments = metrics.counter('plat_gateway_audit_collector_segments_total')
  const refusals = metrics.counter('plat_gateway_audit_collector_refused_total')
  const seqs = metrics.gauge('plat_gateway_audit_collector_edge_seq')
  return {
    segment: (result) => segments.inc({ result }),
    refused: (reason) => refusals.inc({ reason }),
    edgeSeq: (edge, seq) => seqs.set({ edge }, seq),
  }
}

/** What traces count, and calls in their words. An empty value: there is none. */
export function otelMetrics(metrics: GatewayMetrics): OtelParts['metrics'] {
  const exported = metrics.counter('plat_gateway_otel_spans_exported_total')
  const dropped = metrics.counter('plat_gateway_otel_spans_dropped_total')
  const failed = metrics.counter('plat_gateway_otel_spans_failed_total')
  const queued = metrics.gauge('plat_gateway_otel_queue_length')
  const served = metrics.histogram('mcp_server_operation_duration_seconds')
  const generated = metrics.histogram('gen_ai_client_operation_duration_seconds')
  const tokens = metrics.histogram('gen_ai_client_token_usage')
  return {
    exported: (spans) => exported.inc({}, spans),
    dropped: (spans) => dropped.inc({}, spans),
    failed: (spans) => failed.inc({}, spans),
    queued: (spans) => queued.set({}, spans),
    mcp: ({ method, errorType }, seconds) =>
      served.observe({ mcp_method_name: method, error_type: errorType }, seconds),
    generated: ({ operation, provider, requestModel, responseModel, errorType }, seconds) =>
      generated.observe(
        {
          gen_ai_operation_name: operation,
          gen_ai_provider_name: provider,
          gen_ai_request_model: requestModel,
          gen_ai_response_model: responseModel,
          error_type: errorType,
        },
        seconds,
      ),
    tokens: ({ operation, provider, route, type }, count) =>
      tokens.observe(
        {
          gen_ai_operation_name: operation,
          gen_ai_provider_name: provider,
          plat_model_route: route,
          gen_ai_token_type: type,
        },
        count,
      ),
  }
}

/** What budgets count. */
export function budgetMetrics(metrics: GatewayMetrics): BudgetMetrics {
  const total = metrics.gauge('plat_gateway_metered_cost_usd')
  const denied = metrics.counter('plat_gateway_budget_denied_total')
  const alerts = metrics.counter('plat_gateway_budget_alerts_total')
  const rateLimited = metrics.counter('plat_gateway_rate_limited_total')
  return {
    metered: (cost) => total.set({}, cost),
    denied: (scope) => denied.inc({ scope }),
    alerted: (scope, percent) => alerts.inc({ scope, percent: String(percent) }),
    rateLimited: () => rateLimited.inc({}),
  }
}

/** What data-loss prevention counts. */
export function dlpMetrics(metrics: GatewayMetrics): CountHit {
  const hits = metrics.counter('plat_gateway_dlp_hits_total')
  return (detector, direction, action) => hits.inc({ detector, direction, action })
}

/** What revocations count. */
export function revocationMetrics(metrics: GatewayMetrics): RevocationMetrics {
  const revoked = metrics.counter('plat_gateway_revoked_total')
  const active = metrics.gauge('plat_gateway_revocations_active')
  const propagation = metrics.summary('plat_gateway_revocation_propagation_seconds')
  let longest = 0
  metrics.gauge('plat_gateway_revocation_propagation_max_seconds').from(() => longest)
  return {
    revoked: (scope) => revoked.inc({ scope }),
    active: (source, count) => active.set({ source }, count),
    propagated(seconds) {
      propagation.observe({}, seconds)
      longest = Math.max(longest, seconds)
    },
    listOk: (ask) => metrics.gauge('plat_gateway_revocation_list_ok').from(() => Number(ask())),
  }
}

/** What the state backend tells. */
export function stateMetrics(metrics: GatewayMetrics): Pick<StateBackendOptions, 'uses' | 'leads' | 'lost'> {
  const leader = metrics.gauge('plat_gateway_leader')
  return {
    uses: (type) => metrics.gauge('plat_gateway_state_backend_info').set({ type }, 1),
    leads: (job, leads) => leader.set({ job }, leads ? 1 : 0),
    lost: (isLost) => metrics.gauge('plat_gateway_state_lost').set({}, Number(isLost)),
  }
}
