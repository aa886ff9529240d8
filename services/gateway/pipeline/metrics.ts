import type { Decision } from '../call/index.ts'

/** What the runner counts. `compose` maps each to its row of the metric table. */
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
