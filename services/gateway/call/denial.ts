import { type ErrorCode, errorTable } from './errors.ts'
import type { Decision } from './facts.ts'
import type { Outcome } from './outcome.ts'

/** A refusal. The runner converts a thrown error to a denial with code `internal`. */
export interface Denial {
  readonly kind: 'denial'
  readonly code: ErrorCode
  /** One sentence for the caller; never holds a secret, a token or an argument. */
  readonly reason: string
  readonly policy: string | null
  readonly rule: string | null
  /** After this time the same call may succeed; null: unknown, or never. */
  readonly retryAfterMs: number | null
  /** The scope that was revoked; determines the status: 401 (`jti`, `session`, `user`) or 403. */
  readonly revoked: 'jti' | 'session' | 'user' | 'agent' | 'namespace' | 'tenant' | 'all' | null
  /** Additional data: the scope of a challenge, supported versions (-32022), `approvalId`. */
  readonly data: Readonly<Record<string, unknown>> | null
  /** The policy decision that refuses the call, for its record; absent: no policy refused it. */
  readonly decision?: Decision
  /** The request certainly did not reach the upstream: no connection was made. Absent: it may have. */
  readonly unsent?: true
  /** Upstream attempts before the refusal; absent: none. */
  readonly attempts?: Outcome['attempts']
}

/** Longest reason, in characters: those that quote a caller or a server would otherwise be as long as a body, in the response and in the ledger. */
const MAX_REASON_CHARS = 4096

/** Builds a denial: `deny('policy_denied', 'rule keep', { rule: 'keep' })`. Without `retryAfterMs` the wait of the code applies, if it has one. */
export function deny(
  code: ErrorCode,
  reason: string,
  more: Partial<Omit<Denial, 'kind' | 'code' | 'reason'>> = {},
): Denial {
  return {
    kind: 'denial',
    code,
    reason: reason.length > MAX_REASON_CHARS ? `${reason.slice(0, MAX_REASON_CHARS).toWellFormed()}…` : reason,
    policy: null,
    rule: null,
    retryAfterMs: errorTable[code].waitMs ?? null,
    revoked: null,
    data: null,
    ...more,
  }
}

/** Returns true if a verdict is a denial. */
export function isDenial(value: unknown): value is Denial {
  return typeof value === 'object' && value !== null && kindOf(value) === 'denial'
}

/** Returns the `kind` of a verdict. For verdicts of many shapes this costs a third of a check with `in`. */
export function kindOf(value: { readonly kind?: unknown }): unknown {
  return value.kind
}

/** Scopes for which a revoked caller should authenticate again (401). All wider scopes are 403. */
const REVOKED_CALLER: ReadonlySet<Denial['revoked']> = new Set(['jti', 'session', 'user'])

/** Returns the status of a denial for metrics and outcomes. Protocols may send a different HTTP status. */
export function statusOf(denial: Denial): number {
  return denial.code === 'revoked' && REVOKED_CALLER.has(denial.revoked) ? 401 : errorTable[denial.code].status
}
