/** Every code by which the gateway refuses a call. A later gateway may say others. @table */
export const DENIAL_CODES = [
  'invalid_request',
  'header_mismatch',
  'unsupported_version',
  'unauthenticated',
  'dpop_required',
  'invalid_dpop_proof',
  'insufficient_scope',
  'revoked',
  'suspended',
  'policy_denied',
  'approval_denied',
  'approval_expired',
  'approval_stale',
  'dlp_denied',
  'guard_blocked',
  'tainted_sink',
  'tool_pin_mismatch',
  'residency_denied',
  'provider_hosted_tool',
  'caller_not_allowed',
  'delegation_too_deep',
  'model_not_allowed',
  'price_unknown',
  'offline',
  'forbidden',
  'unknown_server',
  'unknown_tool',
  'unknown_skill',
  'unknown_route',
  'unknown_agent',
  'unknown_session',
  'unknown_method',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'ambiguous_server',
  'conflict',
  'body_too_large',
  'unsupported_media_type',
  'budget_exceeded',
  'rate_limited',
  'backlog_full',
  'internal',
  'not_built',
  'upstream_error',
  'upstream_credential',
  'guard_unavailable',
  'revocations_unavailable',
  'audit_unavailable',
  'state_unavailable',
  'approval_pending',
  'overloaded',
  'upstream_timeout',
] as const

/** A code of the gateway's error table. */
export type DenialCode = (typeof DENIAL_CODES)[number]

const known: ReadonlySet<string> = new Set(DENIAL_CODES)

/** Whether an error's word is one of the gateway's: what upstreams say of themselves has other ones. */
export function isDenialCode(word: unknown): word is DenialCode {
  return typeof word === 'string' && known.has(word)
}
