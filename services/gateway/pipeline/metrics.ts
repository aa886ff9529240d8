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
  const decision = new LastSeries((action, server) => decisions.labels({ action, server }))
  const response = new LastSeries((server, method, code) => requests.labels({ server, method, code }))
  const upstream = new LastSeries((server) => latency.labels({ server }))
  return {
    decided: (action, server) => decision.of(action, server, '').inc(),
    responded: (server, method, status) => response.of(server, method, status).inc(),
    upstream: (server, seconds) => upstream.of(server, '', '').observe(seconds),
    upstreamFailed: (server) => upstreamErrors.inc({ server }),
  }
}

type Label = string | number

/** The series that was counted last: most calls count in the same ones as the call before, which need no look-up. */
class LastSeries<S> {
  readonly #find: (first: string, second: string, third: Label) => S
  #first = ''
  #second = ''
  #third: Label = ''
  #series: S | null = null

  constructor(find: (first: string, second: string, third: Label) => S) {
    this.#find = find
  }

  of(first: string, second: string, third: Label): S {
    if (this.#series !== null && first === this.#first && second === this.#second && third === this.#third)
      return this.#series
    this.#first = first
    this.#second = second
    this.#third = third
    this.#series = this.#find(first, second, third)
    return this.#series
  }
}
