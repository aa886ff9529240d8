import type { GatewayMetrics } from './metrics.ts'
import type { RunnerMetrics } from './pipeline/index.ts'

/** What the runner counts, as rows of the metric table. */
export function runnerMetrics(metrics: GatewayMetrics): RunnerMetrics {
  const decisions = metrics.counter('plat_gateway_decisions_total')
  const requests = metrics.counter('plat_gateway_requests_total')
  const latency = metrics.histogram('plat_gateway_upstream_latency_seconds')
  const upstreamErrors = metrics.counter('plat_gateway_upstream_errors_total')
  const auditErrors = metrics.counter('plat_gateway_audit_errors_total')
  return {
    decided: (action, server) => decisions.inc({ action, server }),
    answered: (server, method, status) => requests.inc({ server, method, code: status }),
    upstream: (server, seconds) => latency.observe({ server }, seconds),
    upstreamFailed: (server) => upstreamErrors.inc({ server }),
    auditFailed: () => auditErrors.inc(),
  }
}
