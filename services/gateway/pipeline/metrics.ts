import type { Decision } from '../call/index.ts'
import type { GatewayMetrics } from '../metrics.ts'

/** Counters of the runner. */
export interface RunnerMetrics {
  /** Called once per verdict on a call; `server` is `unknown` before the target is resolved. */
  decided(action: Decision['action'], server: string): void
  /** Called once per response. `status` is the status of the result, which in MCP and A2A can differ from the HTTP status. */
  responded(server: string, method: string, status: number): void
  /** Called once per forwarded call with the seconds that the upstream took, bodies included. */
  upstream(server: string, seconds: number): void
  /** Called when the upstream sent no usable response. */
  upstreamFailed(server: string): void
}

/** Log of internal errors. Fields contain no argument, token or secret. */
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
    responded: (server, method, status) => requests.inc({ server, method, code: status }),
    upstream: (server, seconds) => latency.observe({ server }, seconds),
    upstreamFailed: (server) => upstreamErrors.inc({ server }),
  }
}
