/** The gateway's part of docs/spec/gateway.md's metric table, as far as this build feeds it. @table */
import { poolsOf } from '@plat/core'
import { licenseMetrics } from '@plat/license'
import { counter, gauge, histogram, type MetricRow, metricRows, NAMES, summary } from '@plat/metrics'
import { errorTable, MEDIA_UNITS } from './call/index.ts'
import { SCOPES as BUDGET_SCOPES } from './decide/budgets/caps/budget.ts'
import { REASONS, RESULTS } from './evidence/audit-collector/collector.ts'
import { RULES as OFFLINE_RULES } from './evidence/offline/stage.ts'
import { WAITS } from './evidence/retention/waits.ts'
import { MIRROR_OUTCOMES } from './evidence/sbxd/mirror.ts'
import { REASONS as BUNDLE_REASONS } from './operate/config-bundle/bundles.ts'
import { ENDINGS } from './operate/live-view/endings.ts'
import { A2A_METHODS } from './planes/a2a/methods.ts'
import { KNOWN_METHODS } from './planes/mcp/classify.ts'
import { CACHE_RESULTS, MODEL_METHODS, RETRY_RESULTS, SKIP_REASONS } from './planes/model/methods.ts'
import { CONTEXT_OPS } from './targets/ctxengine/contexts.ts'

/** Every status that an answer can stand for: success, and the statuses of the error table. */
const CODES = [...new Set(['200', '202', '204', ...Object.values(errorTable).map((row) => String(row.status))])]

/** Methods of MCP and A2A and endpoints of models, and what a request without one is counted as: a stream, the end of a session, an answer. */
const METHODS = [...KNOWN_METHODS, 'GET', 'DELETE', 'response', ...MODEL_METHODS, ...A2A_METHODS]

/** Bounds in seconds of what an upstream takes (docs/spec/gateway.md: 0.005 to 30 s). */
const UPSTREAM_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Directions in which guards check texts. */
const GUARDED = ['toolResult', 'toolArgs', 'llmPrompt']

/** Bucket bounds of one durable commit, in seconds; the shipped alert uses the bucket 0.05. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

/** Bounds in seconds of one operation of a key service; none lasts longer than 10 s. */
const KEY_SERVICE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const KEY_SERVICES = ['kms', 'azurekv', 'pkcs11']
const KEY_OPERATIONS = ['describe', 'sign', 'wrap', 'unwrap']

/** Pools that callers share. */
export const POOLS = poolsOf('gateway')

const limits = { area: 'Limits', feature: '' }
const tools = { area: 'Tools', feature: '' }
const policy = { area: 'Policy', feature: '' }
const revocation = { area: 'Revocation', feature: '' }
const cost = { area: 'Cost', feature: '' }
const models = { area: 'Models', feature: '' }
const agents = { area: 'A2A and sandbox tools', feature: 'a2a' }
const audit = { area: 'Audit', feature: '' }
const keyServices = { area: 'Keys', feature: '' }
const anchors = { area: 'Transparency log', feature: 'transparencyLog' }
const sinks = { area: 'Audit', feature: 'auditSinks' }
const forward = { area: 'Offline edge', feature: 'offline' }
const collector = { area: 'Collector', feature: 'auditCollector' }
const clientAudit = { area: 'Integrations', feature: 'clientAudit' }
const sbxd = { area: 'Integrations', feature: 'sbxd' }
const ctxengine = { area: 'Integrations', feature: 'ctxengine' }
const bundles = { area: 'Config and HA', feature: 'configBundle' }
const synced = { area: 'Config and HA', feature: 'configSync' }
const tenants = { area: 'Tenants', feature: 'tenantsFile' }
const state = { area: 'Config and HA', feature: '' }
const otel = { area: 'OpenTelemetry', feature: 'otel' }

/** Bounds in seconds of an operation of MCP (OpenTelemetry's conventions for generative AI, 1.41.0). */
const MCP_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
/** The same of an operation of a model. */
const GENERATION_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
/** Bounds of tokens of one operation. */
const GENERATION_TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]

export const gatewayMetricRows = [
  ...metricRows(limits, {
    plat_gateway_pool_used: gauge('Units of a shared pool that callers hold', { pool: POOLS }),
    plat_gateway_pool_refusals_total: counter(
      'Refusals by a shared pool, by the bound that was met: the share of one caller, or the total',
      { pool: POOLS, bound: ['share', 'total'] },
    ),
    plat_gateway_overloaded: gauge('Whether new calls are refused because memory is short or the event loop is late'),
  }),
  ...metricRows(tools, {
    plat_gateway_decisions_total: counter(
      'Verdicts over calls by action and server, unknown before the server is resolved',
      { action: ['allow', 'deny', 'require_approval'], server: NAMES },
    ),
    plat_gateway_requests_total: counter(
      'Answered requests by server, method and the HTTP status that the answer stands for',
      { server: NAMES, method: METHODS, code: CODES },
    ),
    plat_gateway_upstream_latency_seconds: histogram(
      'Time that upstreams take to answer',
      { server: NAMES },
      UPSTREAM_SECONDS,
    ),
    plat_gateway_upstream_errors_total: counter('Calls to which the upstream gave no usable answer', { server: NAMES }),
    plat_gateway_mcp_abandoned_calls: gauge('MCP calls that run on at an upstream after their legacy client has left'),
    plat_gateway_mcp_abandoned_aborted_total: counter(
      'MCP calls without a client that were aborted because their session, agent or the gateway had too many',
    ),
    plat_gateway_mcp_left_out_total: counter(
      'Servers that a list at `/mcp` was without, by the code of the refusal or failure',
      { code: Object.keys(errorTable) },
    ),
    plat_gateway_upstreams_configured: gauge('Upstream servers in the registry'),
    plat_gateway_auth_failures_total: counter('Requests refused for their session token, by reason', {
      reason: ['missing', 'malformed', 'signature', 'expired', 'audience', 'issuer', 'typ', 'binding', 'kid'],
    }),
    plat_gateway_admin_auth_failures_total: counter(
      'Requests of the admin and resource API refused for their token, by reason',
      { reason: ['missing', 'invalid', 'throttled'] },
    ),
    plat_gateway_trusted_keys: gauge('Keys that tokens are verified with'),
    plat_gateway_dpop_requests_total: counter(
      'Requests with a verified token by what their proof of possession showed; bound is a valid proof by its key',
      { outcome: ['bound', 'unbound', 'missing', 'invalid', 'replayed'] },
    ),
    plat_gateway_tool_pin_events_total: counter(
      'Tool definitions that were learned or changed, and what was hidden, refused or held for it',
      { server: NAMES, event: ['learned', 'drifted', 'hidden', 'denied', 'held'] },
    ),
    plat_gateway_svid_checks_total: counter('Calls over TLS by what the client certificate said of the session', {
      result: ['match', 'mismatch', 'absent', 'untrusted'],
    }),
  }),
  ...metricRows(policy, {
    plat_gateway_policies_loaded: gauge('Policies in force'),
    plat_gateway_policy_revision: gauge('Generation of the policies in force'),
    plat_gateway_policy_reloads_total: counter(
      'Loads of the policy file by result; after an error the policies before it stay in force',
      { result: ['ok', 'error'] },
    ),
    plat_gateway_dryrun_decisions_total: counter(
      'What policies that are only tried out would have decided, rego for the engine beside the gateway',
      { policy: NAMES, would: ['allow', 'deny', 'require_approval'] },
    ),
    plat_gateway_cedar_available: gauge(
      'Whether the Cedar engine can be used; without it policies with a Cedar text deny',
    ),
    plat_gateway_cedar_policies_unavailable: gauge('Policies whose Cedar text cannot be judged; they deny'),
    plat_gateway_rego_evaluations_total: counter(
      'Questions to the policy engine of policy.rego; an error failed closed',
      { outcome: ['ok', 'error'] },
    ),
    plat_gateway_approvals_pending: gauge('Calls for which somebody is to decide'),
    plat_gateway_dlp_hits_total: counter(
      'What profiles of data-loss prevention found, by detector, and what was done about it; oversize is a message with more text than is read',
      { detector: NAMES, direction: ['arguments', 'response'], action: ['audit', 'redact', 'deny'] },
    ),
    plat_gateway_taint_events_total: counter('Taint labels that sessions took on or lost', {
      op: ['added', 'cleared'],
      label: NAMES,
    }),
    plat_gateway_tainted_sessions: gauge('Sessions with taint labels'),
    plat_gateway_guard_checks_total: counter('Texts that guards read, by what they are and what came of it', {
      guard: NAMES,
      target: GUARDED,
      outcome: ['clean', 'flagged', 'unavailable'],
    }),
    plat_gateway_guard_blocked_total: counter('Texts that went no further because of a guard', {
      guard: NAMES,
      target: GUARDED,
    }),
    plat_gateway_guard_latency_seconds: summary('Time that guards take to read a text', { guard: NAMES }),
    plat_gateway_arg_captures_total: counter('Arguments that were to be captured, by what came of it', {
      outcome: ['written', 'dropped', 'failed'],
    }),
  }),
  ...metricRows(revocation, {
    plat_gateway_revoked_total: counter('Calls denied by a revocation, by what was revoked', {
      scope: ['jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all'],
    }),
    plat_gateway_revocations_active: gauge('Revocations in force by where they stand', {
      source: ['breakglass', 'file'],
    }),
    plat_gateway_revocation_propagation_seconds: summary(
      'Time from the making of a revocation until it was in force here',
    ),
    plat_gateway_revocation_propagation_max_seconds: gauge('Longest of these times since the start'),
    plat_gateway_revocation_list_ok: gauge('0 while every call is denied because revocationsFile cannot be read'),
  }),
  ...metricRows(cost, {
    plat_gateway_metered_cost_usd: gauge('Cost of all calls in the ledger, in the currency of the prices'),
    plat_gateway_budget_denied_total: counter('Calls refused because a budget is used up, by its scope', {
      scope: BUDGET_SCOPES,
    }),
    plat_gateway_budget_alerts_total: counter('Alerts that so many percent of a budget are spent, by its scope', {
      scope: BUDGET_SCOPES,
      percent: { cap: 100 },
    }),
    plat_gateway_rate_limited_total: counter(
      'Model calls refused because their session has used the tokens of its minute',
    ),
  }),
  ...metricRows(models, {
    plat_gateway_model_routes: gauge('Model routes that are served'),
    plat_gateway_model_requests_total: counter(
      'Calls of model routes by route and the HTTP status that the answer stands for',
      { route: NAMES, status: CODES },
    ),
    plat_gateway_model_tokens_total: counter(
      'Tokens of model calls by route, as reported by the upstream or else estimated',
      { route: NAMES, kind: ['prompt', 'completion'] },
    ),
    plat_gateway_model_media_total: counter(
      'Images, characters of speech and seconds of sound of model calls by route',
      { route: NAMES, unit: MEDIA_UNITS },
    ),
    plat_gateway_model_failovers_total: counter(
      'Calls that were sent to another endpoint of their route because one failed',
      { route: NAMES, from: NAMES, to: NAMES },
    ),
    plat_gateway_model_endpoint_failures_total: counter(
      'Failures of the endpoints of model routes: no answer in time, a broken one, 5xx, 408 or 429',
      { route: NAMES, endpoint: NAMES },
    ),
    plat_gateway_model_endpoint_skipped_total: counter('Endpoints of model routes that a call passed over, by reason', {
      route: NAMES,
      endpoint: NAMES,
      reason: SKIP_REASONS,
    }),
    plat_gateway_model_retries_total: counter(
      'Requests that endpoints refused and that were to be repeated: sent again, or not for lack of budget or because the wait was too long',
      { route: NAMES, result: RETRY_RESULTS },
    ),
    plat_gateway_model_cache_total: counter(
      'Calls of model routes with a cache: with a stored response, without one, or that exclude stored responses',
      { route: NAMES, result: CACHE_RESULTS },
    ),
    plat_gateway_model_cache_bytes: gauge('Bytes of the stored responses of model routes'),
    plat_gateway_model_circuits_open: gauge(
      'Endpoints of model routes that failed too often and have not answered since',
    ),
  }),
  ...metricRows(agents, {
    plat_gateway_a2a_calls_total: counter(
      'Calls between agents by their method: in as the gateway took them, out as agents answered them',
      { hop: ['in', 'out'], kind: A2A_METHODS, decision: ['allow', 'deny', 'require_approval'] },
    ),
    plat_gateway_a2a_routes: gauge('Agents that other agents can call'),
  }),
  ...metricRows(
    { area: 'A2A and sandbox tools', feature: 'web' },
    {
      plat_gateway_web_calls_total: counter(
        'Calls of the web tool that reached it: answered, failed in words for the model, or refused by its own rules',
        { tool: ['web_fetch', 'web_search'], result: ['ok', 'error', 'denied'] },
      ),
    },
  ),
  ...metricRows(
    { area: 'A2A and sandbox tools', feature: 'egress' },
    {
      plat_gateway_egress_requests_total: counter('Tunnels that browsers in sandboxes have requested', {
        kind: ['connect'],
        decision: ['allow', 'deny'],
      }),
    },
  ),
  ...metricRows(
    { area: 'A2A and sandbox tools', feature: 'exec' },
    {
      plat_gateway_exec_total: counter('Code that sandboxes were given to run, by how it ended', {
        result: ['ok', 'error', 'timeout', 'denied', 'cancelled'],
      }),
    },
  ),
  ...metricRows(
    { area: 'A2A and sandbox tools', feature: 'liveView' },
    {
      plat_gateway_live_views_total: counter('Views of the browsers of sandboxes, by how they ended', {
        mode: ['watch', 'control', 'page'],
        result: ENDINGS,
      }),
    },
  ),
  ...metricRows(
    { ...audit, feature: 'sovereigntyPolicyFile' },
    {
      plat_gateway_audit_retention_below_ai_act: gauge(
        'Whether the sovereignty policy keeps audit records for less than the six months of the EU AI Act',
      ),
    },
  ),
  ...metricRows(
    { ...audit, feature: 'auditCheckpointKey' },
    {
      plat_gateway_audit_signed_checkpoint_seq: gauge('The last record that a signed checkpoint covers'),
    },
  ),
  ...metricRows(keyServices, {
    plat_gateway_key_service_seconds: histogram(
      'Duration of operations of key services, with waiting time and retries',
      { service: KEY_SERVICES, operation: KEY_OPERATIONS },
      KEY_SERVICE_SECONDS,
    ),
    plat_gateway_key_service_failures_total: counter('Operations of key services that failed', {
      service: KEY_SERVICES,
      operation: KEY_OPERATIONS,
      reason: ['unavailable', 'refused', 'overloaded'],
    }),
  }),
  ...metricRows(
    { ...keyServices, feature: 'tokenVault' },
    {
      plat_gateway_token_vault_pending_removals: gauge(
        'Accounts of revoked users that could not be removed yet, for example because the key service is unavailable',
      ),
    },
  ),
  ...metricRows(anchors, {
    plat_gateway_audit_anchor_seq: gauge('The last record that a checkpoint in the transparency log covers'),
    plat_gateway_audit_anchors_total: counter('Checkpoints put into the transparency log'),
    plat_gateway_audit_anchor_errors_total: counter('Checkpoints that could not be put into the transparency log'),
    plat_gateway_audit_anchor_last_success_timestamp_seconds: gauge(
      'When a checkpoint was last put into the transparency log',
    ),
  }),
  ...metricRows(audit, {
    plat_gateway_audit_head_seq: gauge('Sequence number of the last durable ledger record'),
    plat_gateway_audit_segments: gauge('Sealed segments of the ledger, those that left included'),
    plat_gateway_audit_sealing_failures_total: counter('Failed attempts to seal a segment of the ledger or to list it'),
    plat_gateway_audit_compression_failures_total: counter(
      'Failed attempts to compress a sealed segment of the ledger',
    ),
    plat_gateway_audit_segments_here: gauge(
      'Sealed segments of the ledger that are on the disk, without those that were copied back',
    ),
    plat_gateway_audit_segment_bytes: gauge('Size of these files in bytes'),
    plat_gateway_audit_segments_held: gauge(
      'Sealed segments of the ledger that are due to leave and that legal holds or evidence keep',
    ),
    plat_gateway_audit_segments_waiting: gauge(
      'Sealed segments of the ledger that are due to leave, by what the first of them waits for',
      { reason: [...WAITS] },
    ),
    plat_gateway_audit_segments_left_total: counter('Sealed segments of the ledger that left', {
      how: ['archived', 'deleted'],
    }),
    plat_gateway_audit_oldest_record_seconds: gauge('Age of the oldest record in a sealed segment on the disk'),
    plat_gateway_audit_retention_failures_total: counter('Failed attempts to let sealed segments of the ledger leave'),
    plat_gateway_audit_verified_segments: gauge('Sealed segments of the ledger that were verified since the start'),
    plat_gateway_audit_damaged_segments: gauge(
      'Segments of the ledger that were found damaged since the start, the active one included',
    ),
    plat_gateway_audit_copy_lag: gauge('Durable records that the copies in the state database do not have yet'),
    plat_gateway_audit_copy_lag_seconds: gauge('Time since the copy that is furthest behind had all durable records'),
    plat_gateway_audit_copies_stuck: gauge(
      'Ledgers that cannot be copied to the state database until somebody acts: another process writes the copy, or it differs',
    ),
    plat_gateway_audit_copies_damaged: gauge(
      'Copies of the ledgers of other replicas that are not what was written, as this gateway found them',
    ),
    plat_gateway_audit_errors_total: counter('Ledger records that could not be made durable'),
    plat_gateway_audit_commit_seconds: histogram(
      'Time of one durable commit, however many records it holds',
      {},
      COMMIT_SECONDS,
    ),
    plat_gateway_audit_committed_records_total: counter('Ledger records made durable'),
  }),
  ...metricRows(sinks, {
    plat_gateway_audit_sink_lag: gauge('Durable records that a sink is not done with', { sink: NAMES }),
    plat_gateway_audit_sink_delivered_total: counter('Records that a sink took', { sink: NAMES }),
    plat_gateway_audit_sink_errors_total: counter(
      'Deliveries that failed or were refused; their records are sent again',
      { sink: NAMES },
    ),
    plat_gateway_audit_sink_dead_lettered_total: counter(
      'Records that a sink will never take and that went to its dead letters',
      { sink: NAMES },
    ),
  }),
  ...metricRows(forward, {
    plat_gateway_audit_forward_unforwarded_records: gauge('Ledger records that no collector was given yet'),
    plat_gateway_audit_forward_oldest_unforwarded_age_seconds: gauge('Time for which the oldest of them waits'),
    plat_gateway_audit_forward_last_ack_timestamp_seconds: gauge(
      'When a collector last acknowledged records, in seconds since the epoch; 0 before it did',
    ),
    plat_gateway_audit_forward_acked_seq: gauge('The last record that a collector acknowledged; -1 before it did'),
    plat_gateway_audit_forward_spool_bytes: gauge('Bytes of segments in the spool'),
    plat_gateway_audit_forward_spool_max_bytes: gauge('Bytes that the spool may hold'),
    plat_gateway_audit_forward_spool_full: gauge(
      'Whether the spool takes no further segment, so that tool calls are denied',
    ),
    plat_gateway_audit_forward_connected: gauge(
      'Whether a collector responded within offline.disconnectedAfterSeconds',
    ),
    plat_gateway_audit_forward_errors_total: counter('Attempts to forward segments or to take receipts that failed'),
    plat_gateway_offline_denials_total: counter('Calls that the edge refused because it was on its own, by rule', {
      rule: OFFLINE_RULES,
    }),
  }),
  ...metricRows(collector, {
    plat_gateway_audit_collector_segments_total: counter('Segments that edges sent, by what became of them', {
      result: RESULTS,
    }),
    plat_gateway_audit_collector_refused_total: counter('Segments that were refused, by reason', { reason: REASONS }),
    plat_gateway_audit_collector_edge_seq: gauge('The last record of each edge that is stored; -1 while none is', {
      edge: NAMES,
    }),
  }),
  ...metricRows(clientAudit, {
    plat_gateway_client_audit_verified: gauge('Whether the ledger of a client verified when it was last read', {
      anchor: NAMES,
    }),
    plat_gateway_client_audit_head_seq: gauge('The last anchored record of the ledger of a client', { anchor: NAMES }),
    plat_gateway_client_audit_anchor_append_failures_total: counter(
      'Anchors and alerts of the ledger of a client that could not be recorded',
      { anchor: NAMES },
    ),
  }),
  ...metricRows(sbxd, {
    plat_gateway_sbxd_mirror_total: counter('Decisions sent to the sandbox daemon, by outcome', {
      outcome: MIRROR_OUTCOMES,
    }),
    plat_gateway_sbxd_audit_verified: gauge('Whether the ledger of the sandbox daemon verified when it was last read'),
    plat_gateway_sbxd_audit_head_seq: gauge('The last anchored record of the ledger of the sandbox daemon'),
    plat_gateway_sbxd_anchor_append_failures_total: counter(
      'Anchors and alerts of the ledger of the sandbox daemon that could not be recorded',
    ),
  }),
  ...metricRows(ctxengine, {
    plat_gateway_ctxengine_contexts: gauge('Contexts of sessions that the gateway keeps in engines'),
    plat_gateway_ctxengine_context_ops_total: counter('Operations on contexts of sessions', { op: CONTEXT_OPS }),
    plat_gateway_ctxengine_audit_verified: gauge('Whether a ledger of the engine verified when it was last read', {
      anchor: NAMES,
    }),
    plat_gateway_ctxengine_audit_head_seq: gauge('The last anchored record of a ledger of the engine', {
      anchor: NAMES,
    }),
    plat_gateway_ctxengine_anchor_append_failures_total: counter(
      'Anchors and alerts of a ledger of the engine that could not be recorded',
      { anchor: NAMES },
    ),
  }),
  ...metricRows(synced, {
    plat_gateway_configsync_last_success_timestamp_seconds: gauge(
      'When a ConfigMap was last read well, in seconds since the epoch',
      { configmap: NAMES },
    ),
    plat_gateway_configsync_errors_total: counter('Readings of a ConfigMap that failed', { configmap: NAMES }),
  }),
  ...metricRows(bundles, {
    plat_gateway_config_bundle_revision: gauge('Revision of the configuration bundle in force; 0 before the first'),
    plat_gateway_config_bundles_applied_total: counter('Configuration bundles that were put into force'),
    plat_gateway_config_bundles_refused_total: counter(
      'Configuration bundles that were refused, by reason; the one before stayed in force',
      { reason: BUNDLE_REASONS },
    ),
  }),
  ...metricRows(tenants, {
    plat_gateway_tenants: gauge('Tenants in force'),
    plat_gateway_tenants_file_ok: gauge('0 while tenantsFile cannot be used and earlier tenants stay in force'),
    plat_gateway_tenant_calls_total: counter('Ended calls of tenants by their decision', {
      tenant: NAMES,
      action: ['allow', 'deny', 'require_approval'],
    }),
    plat_gateway_tenant_crossings_total: counter(
      'Calls that were refused because they would cross a boundary of tenants: by key, by their origin, or by target',
      { by: ['key', 'origin', 'target'] },
    ),
    plat_gateway_tenant_audit_head_seq: gauge('Sequence number of the last durable record of the ledger of a tenant', {
      tenant: NAMES,
    }),
    plat_gateway_tenant_audit_signed_checkpoint_seq: gauge(
      'The last record of the ledger of a tenant that a signed checkpoint covers',
      { tenant: NAMES },
    ),
    plat_gateway_tenant_audit_damaged_segments: gauge(
      'Segments of the ledger of a tenant that were found damaged since the start, the active one included',
      { tenant: NAMES },
    ),
  }),
  ...metricRows(state, {
    plat_gateway_state_backend_info: gauge('1 for the state backend in use', { type: ['file', 'postgres'] }),
    plat_gateway_state_lost: gauge(
      '1 while every call is denied because the state database lacks what it had acknowledged',
    ),
    plat_gateway_leader: gauge('1 while this replica leads the job, 0 while another one may', {
      job: ['state', 'confirmations', 'mirror', 'accounts-mirror', 'notifications'],
    }),
  }),
  ...metricRows(otel, {
    mcp_server_operation_duration_seconds: histogram(
      'Time from a request of MCP to the end of its answer, by method and what went wrong',
      { mcp_method_name: METHODS, error_type: NAMES },
      MCP_SECONDS,
    ),
    gen_ai_client_token_usage: histogram(
      'Tokens of model calls as providers reported them',
      {
        gen_ai_operation_name: NAMES,
        gen_ai_provider_name: NAMES,
        plat_model_route: NAMES,
        gen_ai_token_type: ['input', 'output'],
      },
      GENERATION_TOKENS,
    ),
    gen_ai_client_operation_duration_seconds: histogram(
      'Time from the forwarding of a model call to the end of its answer, by model and what went wrong',
      {
        gen_ai_operation_name: NAMES,
        gen_ai_provider_name: NAMES,
        gen_ai_request_model: NAMES,
        gen_ai_response_model: NAMES,
        error_type: NAMES,
      },
      GENERATION_SECONDS,
    ),
    plat_gateway_otel_spans_exported_total: counter('Spans that the collector took'),
    plat_gateway_otel_spans_dropped_total: counter('Spans for which the queue had no room'),
    plat_gateway_otel_spans_failed_total: counter(
      'Spans that the collector refused or rejected, or that were given up',
    ),
    plat_gateway_otel_queue_length: gauge('Spans that wait for their export'),
  }),
  ...licenseMetrics,
] as const satisfies readonly MetricRow[]
