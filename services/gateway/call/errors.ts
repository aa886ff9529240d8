/**
 * Every refusal of the data plane. A plane renders a row in the format of its protocol; statuses are defined only here.
 * MCP and A2A carry the status as JSON-RPC `code` unless `rpc` names a protocol code.
 */
export interface ErrorRow {
  /** HTTP status of the refusal. */
  readonly status: number
  /** JSON-RPC code where a protocol defines one. */
  readonly rpc?: number
  /** Every plane sends this refusal as the HTTP status. */
  readonly http?: true
  /** The response has a `WWW-Authenticate` challenge. */
  readonly challenge?: true
  /** The same call may succeed later. Absent: the response has `x-should-retry: false`. */
  readonly retry?: true
  /** Milliseconds after which the same call may succeed, where the refusal does not know better. Absent: unknown. */
  readonly waitMs?: number
}

/** Wait for something unavailable, which is usually a restart or a failover that takes seconds. */
const UNAVAILABLE_MS = 2_000
/** Running calls end continuously. */
const BACKLOG_MS = 1_000

const table = {
  invalid_request: { status: 400, rpc: -32600, http: true },
  header_mismatch: { status: 400, rpc: -32020, http: true },
  unsupported_version: { status: 400, rpc: -32022, http: true },
  unauthenticated: { status: 401, http: true, challenge: true },
  dpop_required: { status: 401, http: true, challenge: true },
  invalid_dpop_proof: { status: 401, http: true, challenge: true },
  insufficient_scope: { status: 403, http: true, challenge: true },
  revoked: { status: 403 },
  suspended: { status: 403 },
  policy_denied: { status: 403 },
  approval_denied: { status: 403 },
  approval_expired: { status: 403 },
  approval_stale: { status: 403 },
  dlp_denied: { status: 403 },
  guard_blocked: { status: 403 },
  tainted_sink: { status: 403 },
  tool_pin_mismatch: { status: 403 },
  residency_denied: { status: 403 },
  provider_hosted_tool: { status: 403 },
  caller_not_allowed: { status: 403 },
  delegation_too_deep: { status: 403 },
  model_not_allowed: { status: 403 },
  price_unknown: { status: 403 },
  offline: { status: 403 },
  forbidden: { status: 403 },
  unknown_server: { status: 404 },
  unknown_tool: { status: 404 },
  unknown_skill: { status: 404 },
  unknown_route: { status: 404 },
  unknown_agent: { status: 404 },
  unknown_session: { status: 404, http: true },
  unknown_method: { status: 404, rpc: -32601 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405, http: true },
  request_timeout: { status: 408, http: true, retry: true },
  ambiguous_server: { status: 409 },
  conflict: { status: 409 },
  body_too_large: { status: 413, http: true },
  unsupported_media_type: { status: 415, http: true },
  budget_exceeded: { status: 429 },
  rate_limited: { status: 429, retry: true },
  backlog_full: { status: 429, retry: true, waitMs: BACKLOG_MS },
  internal: { status: 500, retry: true },
  not_built: { status: 501 },
  upstream_error: { status: 502, retry: true },
  upstream_credential: { status: 502, retry: true },
  guard_unavailable: { status: 503, retry: true, waitMs: UNAVAILABLE_MS },
  revocations_unavailable: { status: 503, http: true, retry: true, waitMs: UNAVAILABLE_MS },
  audit_unavailable: { status: 503, http: true, retry: true, waitMs: UNAVAILABLE_MS },
  state_unavailable: { status: 503, http: true, retry: true, waitMs: UNAVAILABLE_MS },
  approval_pending: { status: 503, retry: true },
  overloaded: { status: 503, http: true, retry: true, waitMs: UNAVAILABLE_MS },
  upstream_timeout: { status: 504, retry: true },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof table

export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = table
