import { licenseMetrics } from '@plat/license'
import { type MetricRow, NAMES } from '@plat/metrics'
import { SESSION_PHASES } from '@plat/resources'

/** Reconciled objects, as metric labels. */
export const CONTROLLERS = [
  'render',
  'agent',
  'mcpserver',
  'toolpolicy',
  'budgetpolicy',
  'memorystore',
  'sovereigntypolicy',
  'trusttier',
  'agentrevocation',
  'agentsession',
  'warmpool',
] as const

export type ControllerName = (typeof CONTROLLERS)[number]

/** Words of the API server's Status, and a few of our own; what the API server may add one day is counted too. */
const REASONS = { cap: 64 } as const

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
/** As controllers of Kubernetes have it for what waits in a queue. */
const QUEUE_SECONDS = [1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 100, 1000] as const

const controller = { controller: CONTROLLERS } as const
const queue = { name: CONTROLLERS } as const
const ours = { area: 'Operator', feature: '' } as const
const standard = { area: 'Standard series of controllers', feature: '' } as const

/** Every series of the operator (docs/spec/gateway.md, "Metrics"): its own, and those that controllers of Kubernetes have. */
export const operatorMetrics = [
  {
    name: 'plat_reconcile_errors_total',
    type: 'counter',
    labels: { ...controller, reason: REASONS },
    help: 'Reconciliations that failed, by the reason',
    ...ours,
  },
  {
    name: 'plat_reconcile_duration_seconds',
    type: 'histogram',
    labels: controller,
    buckets: SECONDS,
    help: 'How long a reconciliation took',
    ...ours,
  },
  {
    name: 'plat_session_ready_seconds',
    type: 'histogram',
    labels: { tier: NAMES, mode: ['claim', 'direct'] },
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    help: 'From the admission of a session until it first ran',
    ...ours,
  },
  {
    name: 'plat_sessions',
    type: 'gauge',
    labels: { namespace: NAMES, tier: NAMES, phase: SESSION_PHASES },
    help: 'Sessions by phase; reported only by the leader',
    ...ours,
  },
  {
    name: 'plat_session_phase_transitions_total',
    type: 'counter',
    labels: { from: ['New', ...SESSION_PHASES], to: SESSION_PHASES, reason: REASONS },
    help: 'Phases that sessions have changed into',
    ...ours,
  },
  {
    name: 'plat_session_outcomes_total',
    type: 'counter',
    labels: { tier: NAMES, result: ['Succeeded', 'Failed', 'Expired', 'Revoked', 'Cancelled'] },
    help: 'Sessions that have ended, by how',
    ...ours,
  },
  {
    name: 'plat_token_mint_seconds',
    type: 'histogram',
    labels: {},
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    help: 'How long the broker took to mint a token',
    ...ours,
  },
  {
    name: 'plat_warm_pool_ready',
    type: 'gauge',
    labels: { tier: NAMES },
    help: 'Ready warm pods in all namespaces; reported only by the leader',
    ...ours,
  },
  {
    name: 'plat_rendered_configmap_bytes',
    type: 'gauge',
    labels: { name: NAMES },
    help: 'Size of a rendered ConfigMap; the platform rejects one over 1 MiB',
    ...ours,
  },
  {
    name: 'plat_rendered_output_failed',
    type: 'gauge',
    labels: { name: NAMES },
    help: '1 while the last write of a ConfigMap or Secret for the gateway failed: it stays as it was',
    ...ours,
  },
  {
    name: 'plat_billable_nodes',
    type: 'gauge',
    labels: { period: ['current', 'day', 'month'] },
    help: 'Nodes that run sandboxes: now, and the most at once of the day and of the month (UTC); the leader alone shows it',
    ...ours,
  },
  ...licenseMetrics,
  {
    name: 'controller_runtime_reconcile_total',
    type: 'counter',
    labels: { ...controller, result: ['success', 'error', 'requeue_after'] },
    help: 'Reconciliations by their result',
    ...standard,
  },
  {
    name: 'controller_runtime_reconcile_errors_total',
    type: 'counter',
    labels: controller,
    help: 'Reconciliations that failed',
    ...standard,
  },
  {
    name: 'controller_runtime_reconcile_time_seconds',
    type: 'histogram',
    labels: controller,
    buckets: SECONDS,
    help: 'How long a reconciliation took',
    ...standard,
  },
  {
    name: 'controller_runtime_active_workers',
    type: 'gauge',
    labels: controller,
    help: 'Reconciliations that run now',
    ...standard,
  },
  {
    name: 'workqueue_depth',
    type: 'gauge',
    labels: queue,
    help: 'Keys that wait in a queue',
    ...standard,
  },
  {
    name: 'workqueue_adds_total',
    type: 'counter',
    labels: queue,
    help: 'Keys that were put in a queue',
    ...standard,
  },
  {
    name: 'workqueue_retries_total',
    type: 'counter',
    labels: queue,
    help: 'Keys that were put in a queue again after a failure',
    ...standard,
  },
  {
    name: 'workqueue_queue_duration_seconds',
    type: 'histogram',
    labels: queue,
    buckets: QUEUE_SECONDS,
    help: 'How long a key waited in a queue',
    ...standard,
  },
  {
    name: 'rest_client_requests_total',
    type: 'counter',
    labels: { method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WATCH'], code: REASONS },
    help: 'Requests to the API server; code 0 where none was answered',
    ...standard,
  },
  {
    name: 'leader_election_master_status',
    type: 'gauge',
    labels: { name: NAMES },
    help: '1 while this replica leads',
    ...standard,
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    labels: {},
    help: 'Memory of the process that is in RAM',
    ...standard,
  },
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    labels: {},
    help: 'CPU time of the process, user and system',
    ...standard,
  },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    labels: {},
    help: 'When the process started, in seconds since the Unix epoch',
    ...standard,
  },
  {
    name: 'nodejs_heap_size_used_bytes',
    type: 'gauge',
    labels: {},
    help: 'Heap of the runtime that is in use',
    ...standard,
  },
] as const satisfies readonly MetricRow[]
