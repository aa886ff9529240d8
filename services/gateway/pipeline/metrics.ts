import type { Decision } from '../call/index.ts'
import type { GatewayMetrics } from '../metrics.ts'

/** What the runner counts. */
export interface RunnerMetrics {
  /** Once per verdict over a call; server `unknown` before it is resolved. */
  decided(action: Decision['action'], server: string): void
  /** Once per answered call. `status`: what the answer stands for, which in MCP and A2A differs from the HTTP status. */
  answered(server: string, method: string, status: number): void
  /** Once per forwarded call: seconds that the upstream took, bodies included. */
  upstream(server: string, seconds: number): void
  /** The upstream gave no usable answer. */
  upstreamFailed(server: string): void
}

/** What the runner says when something breaks. Fields hold no argument, token or secret. */
export interface RunnerLog {
  error(fields: object, message: string): void
}

/** Returns the series of the runner. */
export function createRunnerMetrics(metrics: GatewayMetrics): RunnerMetrics {
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
