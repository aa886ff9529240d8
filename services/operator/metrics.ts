import { licenseMetrics } from '@plat/license'
import { counter, gauge, histogram, type MetricRow, metricRows, NAMES } from '@plat/metrics'
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
  'stdioserver',
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
  ...metricRows(ours, {
    plat_reconcile_errors_total: counter('Reconciliations that failed, by the reason', {
      ...controller,
      reason: REASONS,
    }),
    plat_reconcile_duration_seconds: histogram('How long a reconciliation took', controller, SECONDS),
    plat_session_ready_seconds: histogram(
      'From the admission of a session until it first ran',
      { tier: NAMES, mode: ['claim', 'direct'] },
      [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    ),
    plat_sessions: gauge('Sessions by phase; reported only by the leader', {
      namespace: NAMES,
      tier: NAMES,
      phase: SESSION_PHASES,
    }),
    plat_session_phase_transitions_total: counter('Phases that sessions have changed into', {
      from: ['New', ...SESSION_PHASES],
      to: SESSION_PHASES,
      reason: REASONS,
    }),
    plat_session_outcomes_total: counter('Sessions that have ended, by how', {
      tier: NAMES,
      result: ['Succeeded', 'Failed', 'Expired', 'Revoked', 'Cancelled'],
    }),
    plat_token_mint_seconds: histogram(
      'How long the broker took to mint a token',
      {},
      [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ),
    plat_warm_pool_ready: gauge('Ready warm pods in all namespaces; reported only by the leader', { tier: NAMES }),
    plat_rendered_configmap_bytes: gauge('Size of a rendered ConfigMap; the platform rejects one over 1 MiB', {
      name: NAMES,
    }),
    plat_rendered_output_failed: gauge(
      '1 while the last write of a ConfigMap or Secret for the gateway failed: it stays as it was',
      { name: NAMES },
    ),
    plat_billable_nodes: gauge(
      'Nodes that run sandboxes: now, and the most at once of the day and of the month (UTC); the leader alone shows it',
      { period: ['current', 'day', 'month'] },
    ),
  }),
  ...licenseMetrics,
  ...metricRows(standard, {
    controller_runtime_reconcile_total: counter('Reconciliations by their result', {
      ...controller,
      result: ['success', 'error', 'requeue_after'],
    }),
    controller_runtime_reconcile_errors_total: counter('Reconciliations that failed', controller),
    controller_runtime_reconcile_time_seconds: histogram('How long a reconciliation took', controller, SECONDS),
    controller_runtime_active_workers: gauge('Reconciliations that run now', controller),
    workqueue_depth: gauge('Keys that wait in a queue', queue),
    workqueue_adds_total: counter('Keys that were put in a queue', queue),
    workqueue_retries_total: counter('Keys that were put in a queue again after a failure', queue),
    workqueue_queue_duration_seconds: histogram('How long a key waited in a queue', queue, QUEUE_SECONDS),
    rest_client_requests_total: counter('Requests to the API server; code 0 where none was answered', {
      method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'WATCH'],
      code: REASONS,
    }),
    leader_election_master_status: gauge('1 while this replica leads', { name: NAMES }),
    process_resident_memory_bytes: gauge('Memory of the process that is in RAM'),
    process_cpu_seconds_total: counter('CPU time of the process, user and system'),
    process_start_time_seconds: gauge('When the process started, in seconds since the Unix epoch'),
    nodejs_heap_size_used_bytes: gauge('Heap of the runtime that is in use'),
  }),
] as const satisfies readonly MetricRow[]
