/** The gateway's part of docs/spec/gateway.md's metric table, as far as this build feeds it. @table */
import { poolsOf } from '@plat/core'
import { licenseMetrics } from '@plat/license'
import { type MetricRow, NAMES } from '@plat/metrics'
import { errorTable, MEDIA_UNITS } from './call/index.ts'
import { SCOPES as BUDGET_SCOPES } from './decide/budgets/caps/budget.ts'
import { REASONS, RESULTS } from './evidence/audit-collector/collector.ts'
import { RULES as OFFLINE_RULES } from './evidence/offline/stage.ts'
import { WAITS } from './evidence/retention/waits.ts'
import { REASONS as BUNDLE_REASONS } from './operate/config-bundle/bundles.ts'
import { A2A_METHODS } from './planes/a2a/methods.ts'
import { KNOWN_METHODS } from './planes/mcp/classify.ts'
import { CACHE_RESULTS, MODEL_METHODS, RETRY_RESULTS, SKIP_REASONS } from './planes/model/methods.ts'

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
const anchors = { area: 'Transparency log', feature: 'transparencyLog' }
const sinks = { area: 'Audit', feature: 'auditSinks' }
const forward = { area: 'Offline edge', feature: 'offline' }
const collector = { area: 'Collector', feature: 'auditCollector' }
const bundles = { area: 'Config and HA', feature: 'configBundle' }
const synced = { area: 'Config and HA', feature: 'configSync' }
const state = { area: 'Config and HA', feature: '' }
const otel = { area: 'OpenTelemetry', feature: 'otel' }

/** Bounds in seconds of an operation of MCP (OpenTelemetry's conventions for generative AI, 1.41.0). */
const MCP_SECONDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
/** The same of an operation of a model. */
const GENERATION_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
/** Bounds of tokens of one operation. */
const GENERATION_TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]

export const gatewayMetricRows = [
  {
    ...limits,
    name: 'plat_gateway_pool_used',
    type: 'gauge',
    labels: { pool: POOLS },
    help: 'Units of a shared pool that callers hold',
  },
  {
    ...limits,
    name: 'plat_gateway_pool_refusals_total',
    type: 'counter',
    labels: { pool: POOLS, bound: ['share', 'total'] },
    help: 'Refusals by a shared pool, by the bound that was met: the share of one caller, or the total',
  },
  {
    ...limits,
    name: 'plat_gateway_overloaded',
    type: 'gauge',
    labels: {},
    help: 'Whether new calls are refused because memory is short or the event loop is late',
  },
  {
    ...tools,
    name: 'plat_gateway_decisions_total',
    type: 'counter',
    labels: { action: ['allow', 'deny', 'require_approval'], server: NAMES },
    help: 'Verdicts over calls by action and server, unknown before the server is resolved',
  },
  {
    ...tools,
    name: 'plat_gateway_requests_total',
    type: 'counter',
    labels: { server: NAMES, method: METHODS, code: CODES },
    help: 'Answered requests by server, method and the HTTP status that the answer stands for',
  },
  {
    ...tools,
    name: 'plat_gateway_upstream_latency_seconds',
    type: 'histogram',
    labels: { server: NAMES },
    buckets: UPSTREAM_SECONDS,
    help: 'Time that upstreams take to answer',
  },
  {
    ...tools,
    name: 'plat_gateway_upstream_errors_total',
    type: 'counter',
    labels: { server: NAMES },
    help: 'Calls to which the upstream gave no usable answer',
  },
  {
    ...tools,
    name: 'plat_gateway_mcp_abandoned_calls',
    type: 'gauge',
    labels: {},
    help: 'MCP calls that run on at an upstream after their legacy client has left',
  },
  {
    ...tools,
    name: 'plat_gateway_mcp_abandoned_aborted_total',
    type: 'counter',
    labels: {},
    help: 'MCP calls without a client that were aborted because their session, agent or the gateway had too many',
  },
  {
    ...tools,
    name: 'plat_gateway_mcp_left_out_total',
    type: 'counter',
    labels: { code: Object.keys(errorTable) },
    help: 'Servers that a list at `/mcp` was without, by the code of the refusal or failure',
  },
  {
    ...tools,
    name: 'plat_gateway_upstreams_configured',
    type: 'gauge',
    labels: {},
    help: 'Upstream servers in the registry',
  },
  {
    ...tools,
    name: 'plat_gateway_auth_failures_total',
    type: 'counter',
    labels: {
      reason: ['missing', 'malformed', 'signature', 'expired', 'audience', 'issuer', 'typ', 'binding', 'kid'],
    },
    help: 'Requests refused for their session token, by reason',
  },
  {
    ...tools,
    name: 'plat_gateway_admin_auth_failures_total',
    type: 'counter',
    labels: { reason: ['missing', 'invalid', 'throttled'] },
    help: 'Requests of the admin and resource API refused for their token, by reason',
  },
  {
    ...tools,
    name: 'plat_gateway_trusted_keys',
    type: 'gauge',
    labels: {},
    help: 'Keys that tokens are verified with',
  },
  {
    ...tools,
    name: 'plat_gateway_dpop_requests_total',
    type: 'counter',
    labels: { outcome: ['bound', 'unbound', 'missing', 'invalid', 'replayed'] },
    help: 'Requests with a verified token by what their proof of possession showed; bound is a valid proof by its key',
  },
  {
    ...tools,
    name: 'plat_gateway_tool_pin_events_total',
    type: 'counter',
    labels: { server: NAMES, event: ['learned', 'drifted', 'hidden', 'denied', 'held'] },
    help: 'Tool definitions that were learned or changed, and what was hidden, refused or held for it',
  },
  {
    ...tools,
    name: 'plat_gateway_svid_checks_total',
    type: 'counter',
    labels: { result: ['match', 'mismatch', 'absent', 'untrusted'] },
    help: 'Calls over TLS by what the client certificate said of the session',
  },
  {
    ...policy,
    name: 'plat_gateway_policies_loaded',
    type: 'gauge',
    labels: {},
    help: 'Policies in force',
  },
  {
    ...policy,
    name: 'plat_gateway_policy_revision',
    type: 'gauge',
    labels: {},
    help: 'Generation of the policies in force',
  },
  {
    ...policy,
    name: 'plat_gateway_policy_reloads_total',
    type: 'counter',
    labels: { result: ['ok', 'error'] },
    help: 'Loads of the policy file by result; after an error the policies before it stay in force',
  },
  {
    ...policy,
    name: 'plat_gateway_dryrun_decisions_total',
    type: 'counter',
    labels: { policy: NAMES, would: ['allow', 'deny', 'require_approval'] },
    help: 'What policies that are only tried out would have decided, rego for the engine beside the gateway',
  },
  {
    ...policy,
    name: 'plat_gateway_cedar_available',
    type: 'gauge',
    labels: {},
    help: 'Whether the Cedar engine can be used; without it policies with a Cedar text deny',
  },
  {
    ...policy,
    name: 'plat_gateway_cedar_policies_unavailable',
    type: 'gauge',
    labels: {},
    help: 'Policies whose Cedar text cannot be judged; they deny',
  },
  {
    ...policy,
    name: 'plat_gateway_rego_evaluations_total',
    type: 'counter',
    labels: { outcome: ['ok', 'error'] },
    help: 'Questions to the policy engine of policy.rego; an error failed closed',
  },
  {
    ...policy,
    name: 'plat_gateway_approvals_pending',
    type: 'gauge',
    labels: {},
    help: 'Calls for which somebody is to decide',
  },
  {
    ...policy,
    name: 'plat_gateway_dlp_hits_total',
    type: 'counter',
    labels: { detector: NAMES, direction: ['arguments', 'response'], action: ['audit', 'redact', 'deny'] },
    help: 'What profiles of data-loss prevention found, by detector, and what was done about it; oversize is a message with more text than is read',
  },
  {
    ...policy,
    name: 'plat_gateway_taint_events_total',
    type: 'counter',
    labels: { op: ['added', 'cleared'], label: NAMES },
    help: 'Taint labels that sessions took on or lost',
  },
  {
    ...policy,
    name: 'plat_gateway_tainted_sessions',
    type: 'gauge',
    labels: {},
    help: 'Sessions with taint labels',
  },
  {
    ...policy,
    name: 'plat_gateway_guard_checks_total',
    type: 'counter',
    labels: { guard: NAMES, target: GUARDED, outcome: ['clean', 'flagged', 'unavailable'] },
    help: 'Texts that guards read, by what they are and what came of it',
  },
  {
    ...policy,
    name: 'plat_gateway_guard_blocked_total',
    type: 'counter',
    labels: { guard: NAMES, target: GUARDED },
    help: 'Texts that went no further because of a guard',
  },
  {
    ...policy,
    name: 'plat_gateway_guard_latency_seconds',
    type: 'summary',
    labels: { guard: NAMES },
    help: 'Time that guards take to read a text',
  },
  {
    ...policy,
    name: 'plat_gateway_arg_captures_total',
    type: 'counter',
    labels: { outcome: ['written', 'dropped', 'failed'] },
    help: 'Arguments that were to be captured, by what came of it',
  },
  {
    ...revocation,
    name: 'plat_gateway_revoked_total',
    type: 'counter',
    labels: { scope: ['jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all'] },
    help: 'Calls denied by a revocation, by what was revoked',
  },
  {
    ...revocation,
    name: 'plat_gateway_revocations_active',
    type: 'gauge',
    labels: { source: ['breakglass', 'file'] },
    help: 'Revocations in force by where they stand',
  },
  {
    ...revocation,
    name: 'plat_gateway_revocation_propagation_seconds',
    type: 'summary',
    labels: {},
    help: 'Time from the making of a revocation until it was in force here',
  },
  {
    ...revocation,
    name: 'plat_gateway_revocation_propagation_max_seconds',
    type: 'gauge',
    labels: {},
    help: 'Longest of these times since the start',
  },
  {
    ...revocation,
    name: 'plat_gateway_revocation_list_ok',
    type: 'gauge',
    labels: {},
    help: '0 while every call is denied because revocationsFile cannot be read',
  },
  {
    ...cost,
    name: 'plat_gateway_metered_cost_usd',
    type: 'gauge',
    labels: {},
    help: 'Cost of all calls in the ledger, in the currency of the prices',
  },
  {
    ...cost,
    name: 'plat_gateway_budget_denied_total',
    type: 'counter',
    labels: { scope: BUDGET_SCOPES },
    help: 'Calls refused because a budget is used up, by its scope',
  },
  {
    ...cost,
    name: 'plat_gateway_budget_alerts_total',
    type: 'counter',
    labels: { scope: BUDGET_SCOPES, percent: { cap: 100 } },
    help: 'Alerts that so many percent of a budget are spent, by its scope',
  },
  {
    ...cost,
    name: 'plat_gateway_rate_limited_total',
    type: 'counter',
    labels: {},
    help: 'Model calls refused because their session has used the tokens of its minute',
  },
  {
    ...models,
    name: 'plat_gateway_model_routes',
    type: 'gauge',
    labels: {},
    help: 'Model routes that are served',
  },
  {
    ...models,
    name: 'plat_gateway_model_requests_total',
    type: 'counter',
    labels: { route: NAMES, status: CODES },
    help: 'Calls of model routes by route and the HTTP status that the answer stands for',
  },
  {
    ...models,
    name: 'plat_gateway_model_tokens_total',
    type: 'counter',
    labels: { route: NAMES, kind: ['prompt', 'completion'] },
    help: 'Tokens of model calls by route, as reported by the upstream or else estimated',
  },
  {
    ...models,
    name: 'plat_gateway_model_media_total',
    type: 'counter',
    labels: { route: NAMES, unit: MEDIA_UNITS },
    help: 'Images, characters of speech and seconds of sound of model calls by route',
  },
  {
    ...models,
    name: 'plat_gateway_model_failovers_total',
    type: 'counter',
    labels: { route: NAMES, from: NAMES, to: NAMES },
    help: 'Calls that were sent to another endpoint of their route because one failed',
  },
  {
    ...models,
    name: 'plat_gateway_model_endpoint_failures_total',
    type: 'counter',
    labels: { route: NAMES, endpoint: NAMES },
    help: 'Failures of the endpoints of model routes: no answer in time, a broken one, 5xx, 408 or 429',
  },
  {
    ...models,
    name: 'plat_gateway_model_endpoint_skipped_total',
    type: 'counter',
    labels: { route: NAMES, endpoint: NAMES, reason: SKIP_REASONS },
    help: 'Endpoints of model routes that a call passed over, by reason',
  },
  {
    ...models,
    name: 'plat_gateway_model_retries_total',
    type: 'counter',
    labels: { route: NAMES, result: RETRY_RESULTS },
    help: 'Requests that endpoints refused and that were to be repeated: sent again, or not for lack of budget or because the wait was too long',
  },
  {
    ...models,
    name: 'plat_gateway_model_cache_total',
    type: 'counter',
    labels: { route: NAMES, result: CACHE_RESULTS },
    help: 'Calls of model routes with a cache: with a stored response, without one, or that exclude stored responses',
  },
  {
    ...models,
    name: 'plat_gateway_model_cache_bytes',
    type: 'gauge',
    labels: {},
    help: 'Bytes of the stored responses of model routes',
  },
  {
    ...models,
    name: 'plat_gateway_model_circuits_open',
    type: 'gauge',
    labels: {},
    help: 'Endpoints of model routes that failed too often and have not answered since',
  },
  {
    ...agents,
    name: 'plat_gateway_a2a_calls_total',
    type: 'counter',
    labels: { hop: ['in', 'out'], kind: A2A_METHODS, decision: ['allow', 'deny', 'require_approval'] },
    help: 'Calls between agents by their method: in as the gateway took them, out as agents answered them',
  },
  {
    ...agents,
    name: 'plat_gateway_a2a_routes',
    type: 'gauge',
    labels: {},
    help: 'Agents that other agents can call',
  },
  {
    area: 'A2A and sandbox tools',
    feature: 'web',
    name: 'plat_gateway_web_calls_total',
    type: 'counter',
    labels: { tool: ['web_fetch', 'web_search'], result: ['ok', 'error', 'denied'] },
    help: 'Calls of the web tool that reached it: answered, failed in words for the model, or refused by its own rules',
  },
  {
    area: 'A2A and sandbox tools',
    feature: 'egress',
    name: 'plat_gateway_egress_requests_total',
    type: 'counter',
    labels: { kind: ['connect'], decision: ['allow', 'deny'] },
    help: 'Tunnels that browsers in sandboxes have requested',
  },
  {
    area: 'A2A and sandbox tools',
    feature: 'exec',
    name: 'plat_gateway_exec_total',
    type: 'counter',
    labels: { result: ['ok', 'error', 'timeout', 'denied', 'cancelled'] },
    help: 'Code that sandboxes were given to run, by how it ended',
  },
  {
    ...audit,
    feature: 'sovereigntyPolicyFile',
    name: 'plat_gateway_audit_retention_below_ai_act',
    type: 'gauge',
    labels: {},
    help: 'Whether the sovereignty policy keeps audit records for less than the six months of the EU AI Act',
  },
  {
    ...audit,
    feature: 'auditCheckpointKey',
    name: 'plat_gateway_audit_signed_checkpoint_seq',
    type: 'gauge',
    labels: {},
    help: 'The last record that a signed checkpoint covers',
  },
  {
    ...anchors,
    name: 'plat_gateway_audit_anchor_seq',
    type: 'gauge',
    labels: {},
    help: 'The last record that a checkpoint in the transparency log covers',
  },
  {
    ...anchors,
    name: 'plat_gateway_audit_anchors_total',
    type: 'counter',
    labels: {},
    help: 'Checkpoints put into the transparency log',
  },
  {
    ...anchors,
    name: 'plat_gateway_audit_anchor_errors_total',
    type: 'counter',
    labels: {},
    help: 'Checkpoints that could not be put into the transparency log',
  },
  {
    ...anchors,
    name: 'plat_gateway_audit_anchor_last_success_timestamp_seconds',
    type: 'gauge',
    labels: {},
    help: 'When a checkpoint was last put into the transparency log',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_head_seq',
    type: 'gauge',
    labels: {},
    help: 'Sequence number of the last durable ledger record',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segments',
    type: 'gauge',
    labels: {},
    help: 'Sealed segments of the ledger, those that left included',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_sealing_failures_total',
    type: 'counter',
    labels: {},
    help: 'Failed attempts to seal a segment of the ledger or to list it',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_compression_failures_total',
    type: 'counter',
    labels: {},
    help: 'Failed attempts to compress a sealed segment of the ledger',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segments_here',
    type: 'gauge',
    labels: {},
    help: 'Sealed segments of the ledger that are on the disk, without those that were copied back',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segment_bytes',
    type: 'gauge',
    labels: {},
    help: 'Size of these files in bytes',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segments_held',
    type: 'gauge',
    labels: {},
    help: 'Sealed segments of the ledger that are due to leave and that legal holds or evidence keep',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segments_waiting',
    type: 'gauge',
    labels: { reason: [...WAITS] },
    help: 'Sealed segments of the ledger that are due to leave, by what the first of them waits for',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_segments_left_total',
    type: 'counter',
    labels: { how: ['archived', 'deleted'] },
    help: 'Sealed segments of the ledger that left',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_oldest_record_seconds',
    type: 'gauge',
    labels: {},
    help: 'Age of the oldest record in a sealed segment on the disk',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_retention_failures_total',
    type: 'counter',
    labels: {},
    help: 'Failed attempts to let sealed segments of the ledger leave',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_verified_segments',
    type: 'gauge',
    labels: {},
    help: 'Sealed segments of the ledger that were verified since the start',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_damaged_segments',
    type: 'gauge',
    labels: {},
    help: 'Segments of the ledger that were found damaged since the start, the active one included',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_errors_total',
    type: 'counter',
    labels: {},
    help: 'Ledger records that could not be made durable',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_commit_seconds',
    type: 'histogram',
    labels: {},
    buckets: COMMIT_SECONDS,
    help: 'Time of one durable commit, however many records it holds',
  },
  {
    ...audit,
    name: 'plat_gateway_audit_committed_records_total',
    type: 'counter',
    labels: {},
    help: 'Ledger records made durable',
  },
  {
    ...sinks,
    name: 'plat_gateway_audit_sink_lag',
    type: 'gauge',
    labels: { sink: NAMES },
    help: 'Durable records that a sink is not done with',
  },
  {
    ...sinks,
    name: 'plat_gateway_audit_sink_delivered_total',
    type: 'counter',
    labels: { sink: NAMES },
    help: 'Records that a sink took',
  },
  {
    ...sinks,
    name: 'plat_gateway_audit_sink_errors_total',
    type: 'counter',
    labels: { sink: NAMES },
    help: 'Deliveries that failed or were refused; their records are sent again',
  },
  {
    ...sinks,
    name: 'plat_gateway_audit_sink_dead_lettered_total',
    type: 'counter',
    labels: { sink: NAMES },
    help: 'Records that a sink will never take and that went to its dead letters',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_unforwarded_records',
    type: 'gauge',
    labels: {},
    help: 'Ledger records that no collector was given yet',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_oldest_unforwarded_age_seconds',
    type: 'gauge',
    labels: {},
    help: 'Time for which the oldest of them waits',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_last_ack_timestamp_seconds',
    type: 'gauge',
    labels: {},
    help: 'When a collector last acknowledged records, in seconds since the epoch; 0 before it did',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_acked_seq',
    type: 'gauge',
    labels: {},
    help: 'The last record that a collector acknowledged; -1 before it did',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_spool_bytes',
    type: 'gauge',
    labels: {},
    help: 'Bytes of segments in the spool',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_spool_max_bytes',
    type: 'gauge',
    labels: {},
    help: 'Bytes that the spool may hold',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_spool_full',
    type: 'gauge',
    labels: {},
    help: 'Whether the spool takes no further segment, so that tool calls are denied',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_connected',
    type: 'gauge',
    labels: {},
    help: 'Whether a collector responded within offline.disconnectedAfterSeconds',
  },
  {
    ...forward,
    name: 'plat_gateway_audit_forward_errors_total',
    type: 'counter',
    labels: {},
    help: 'Attempts to forward segments or to take receipts that failed',
  },
  {
    ...forward,
    name: 'plat_gateway_offline_denials_total',
    type: 'counter',
    labels: { rule: OFFLINE_RULES },
    help: 'Calls that the edge refused because it was on its own, by rule',
  },
  {
    ...collector,
    name: 'plat_gateway_audit_collector_segments_total',
    type: 'counter',
    labels: { result: RESULTS },
    help: 'Segments that edges sent, by what became of them',
  },
  {
    ...collector,
    name: 'plat_gateway_audit_collector_refused_total',
    type: 'counter',
    labels: { reason: REASONS },
    help: 'Segments that were refused, by reason',
  },
  {
    ...collector,
    name: 'plat_gateway_audit_collector_edge_seq',
    type: 'gauge',
    labels: { edge: NAMES },
    help: 'The last record of each edge that is stored; -1 while none is',
  },
  {
    ...synced,
    name: 'plat_gateway_configsync_last_success_timestamp_seconds',
    type: 'gauge',
    labels: { configmap: NAMES },
    help: 'When a ConfigMap was last read well, in seconds since the epoch',
  },
  {
    ...synced,
    name: 'plat_gateway_configsync_errors_total',
    type: 'counter',
    labels: { configmap: NAMES },
    help: 'Readings of a ConfigMap that failed',
  },
  {
    ...bundles,
    name: 'plat_gateway_config_bundle_revision',
    type: 'gauge',
    labels: {},
    help: 'Revision of the configuration bundle in force; 0 before the first',
  },
  {
    ...bundles,
    name: 'plat_gateway_config_bundles_applied_total',
    type: 'counter',
    labels: {},
    help: 'Configuration bundles that were put into force',
  },
  {
    ...bundles,
    name: 'plat_gateway_config_bundles_refused_total',
    type: 'counter',
    labels: { reason: BUNDLE_REASONS },
    help: 'Configuration bundles that were refused, by reason; the one before stayed in force',
  },
  {
    ...state,
    name: 'plat_gateway_state_backend_info',
    type: 'gauge',
    labels: { type: ['file', 'postgres'] },
    help: '1 for the state backend in use',
  },
  {
    ...state,
    name: 'plat_gateway_state_lost',
    type: 'gauge',
    labels: {},
    help: '1 while every call is denied because the state database lacks what it had acknowledged',
  },
  {
    ...state,
    name: 'plat_gateway_leader',
    type: 'gauge',
    labels: { job: ['state', 'confirmations', 'mirror'] },
    help: '1 while this replica leads the job, 0 while another one may',
  },
  {
    ...otel,
    name: 'mcp_server_operation_duration_seconds',
    type: 'histogram',
    labels: { mcp_method_name: METHODS, error_type: NAMES },
    buckets: MCP_SECONDS,
    help: 'Time from a request of MCP to the end of its answer, by method and what went wrong',
  },
  {
    ...otel,
    name: 'gen_ai_client_token_usage',
    type: 'histogram',
    labels: {
      gen_ai_operation_name: NAMES,
      gen_ai_provider_name: NAMES,
      plat_model_route: NAMES,
      gen_ai_token_type: ['input', 'output'],
    },
    buckets: GENERATION_TOKENS,
    help: 'Tokens of model calls as providers reported them',
  },
  {
    ...otel,
    name: 'gen_ai_client_operation_duration_seconds',
    type: 'histogram',
    labels: {
      gen_ai_operation_name: NAMES,
      gen_ai_provider_name: NAMES,
      gen_ai_request_model: NAMES,
      gen_ai_response_model: NAMES,
      error_type: NAMES,
    },
    buckets: GENERATION_SECONDS,
    help: 'Time from the forwarding of a model call to the end of its answer, by model and what went wrong',
  },
  {
    ...otel,
    name: 'plat_gateway_otel_spans_exported_total',
    type: 'counter',
    labels: {},
    help: 'Spans that the collector took',
  },
  {
    ...otel,
    name: 'plat_gateway_otel_spans_dropped_total',
    type: 'counter',
    labels: {},
    help: 'Spans for which the queue had no room',
  },
  {
    ...otel,
    name: 'plat_gateway_otel_spans_failed_total',
    type: 'counter',
    labels: {},
    help: 'Spans that the collector refused or rejected, or that were given up',
  },
  {
    ...otel,
    name: 'plat_gateway_otel_queue_length',
    type: 'gauge',
    labels: {},
    help: 'Spans that wait for their export',
  },
  ...licenseMetrics,
] as const satisfies readonly MetricRow[]
