import { type ErrorCode, errorTable } from './errors.ts'
import type { Decision } from './facts.ts'
import type { Outcome } from './outcome.ts'

/** A refusal, as a value. A thrown error is a denial too (`internal`), made by the runner. */
export interface Denial {
  readonly kind: 'denial'
  readonly code: ErrorCode
  /** One sentence for the caller; never holds a secret, a token or an argument. */
  readonly reason: string
  readonly policy: string | null
  readonly rule: string | null
  readonly retryAfterMs: number | null
  /** What was revoked; picks 401 (`jti`, `session`, `user`) or 403. */
  readonly revoked: 'jti' | 'session' | 'user' | 'agent' | 'namespace' | 'tenant' | 'all' | null
  /** Challenge scope, versions of -32022, `approvalId`. */
  readonly data: Readonly<Record<string, unknown>> | null
  /** The decision that refuses, for the record; absent: no policy does. */
  readonly decision?: Decision
  /** What was tried upstream before; absent: nothing. */
  readonly attempts?: Outcome['attempts']
}

/** Builds a denial: `deny('policy_denied', 'rule keep', { rule: 'keep' })`. */
export function deny(
  code: ErrorCode,
  reason: string,
  more: Partial<Omit<Denial, 'kind' | 'code' | 'reason'>> = {},
): Denial {
  return {
    kind: 'denial',
    code,
    reason,
    policy: null,
    rule: null,
    retryAfterMs: null,
    revoked: null,
    data: null,
    ...more,
  }
}

/** Tells a denial from any other verdict. */
export function isDenial(value: unknown): value is Denial {
  return typeof value === 'object' && value !== null && kindOf(value) === 'denial'
}

/** What a verdict says that it is. Reading costs a third of asking `in` first where verdicts of many shapes pass. */
export function kindOf(value: { readonly kind?: unknown }): unknown {
  return value.kind
}

/** What was revoked decides: a caller that is itself revoked is told to authenticate again (401), any wider scope is 403. */
const REVOKED_CALLER: ReadonlySet<Denial['revoked']> = new Set(['jti', 'session', 'user'])

/** The HTTP status that a denial stands for, whatever the dialect puts on the wire: the `code` of metrics and outcomes. */
export function statusOf(denial: Denial): number {
  return denial.code === 'revoked' && REVOKED_CALLER.has(denial.revoked) ? 401 : errorTable[denial.code].status
}
