import { PlatError } from '../error.ts'
import type { DenialCode } from './codes.ts'

/** Content of a refusal, for every protocol. */
export interface DenialFacts {
  readonly code: DenialCode
  /** Message of the gateway, for people. */
  readonly message: string
  /** HTTP status of the refusal, also if it is a JSON-RPC error on HTTP 200; 0 if unknown. */
  readonly status: number
  /** The policy and the rule that refused; null if none did, or the protocol does not transmit them. */
  readonly policy: string | null
  readonly rule: string | null
  /** ID of the call in the ledger. */
  readonly decisionId: string | null
  /** When to retry, in milliseconds; null if a retry does not help, or the time is unknown. */
  readonly retryAfterMs: number | null
  readonly approvalId: string | null
  /** Missing scopes. */
  readonly scopes: readonly string[]
  /** URL and provider for connecting the user's account. */
  readonly connectURL: string | null
  readonly provider: string | null
}

/**
 * The gateway refused the call.
 *
 * @example
 * const denied = deniedBy(await client.callTool({ name: 'delete_note', arguments: { name: 'old' } }))
 * if (denied !== null) console.log(denied.code, denied.rule, denied.decisionId)
 */
export class DeniedError extends PlatError implements DenialFacts {
  override readonly name: string = 'DeniedError'
  readonly code: DenialCode
  readonly status: number
  readonly policy: string | null
  readonly rule: string | null
  readonly decisionId: string | null
  readonly retryAfterMs: number | null
  readonly approvalId: string | null
  readonly scopes: readonly string[]
  readonly connectURL: string | null
  readonly provider: string | null

  constructor(facts: DenialFacts, cause?: unknown) {
    super(facts.message, cause === undefined ? undefined : { cause })
    this.code = facts.code
    this.status = facts.status
    this.policy = facts.policy
    this.rule = facts.rule
    this.decisionId = facts.decisionId
    this.retryAfterMs = facts.retryAfterMs
    this.approvalId = facts.approvalId
    this.scopes = facts.scopes
    this.connectURL = facts.connectURL
    this.provider = facts.provider
  }
}

/**
 * The call has a pending approval (`approval_pending`) with the ID `approvalId`. Repeat the call to get the result: see
 * {@link untilApproved}.
 *
 * @example
 * if (denied instanceof ApprovalPendingError) tellUser(`approval ${denied.approvalId} is open`)
 */
export class ApprovalPendingError extends DeniedError {
  override readonly name = 'ApprovalPendingError'
}

/**
 * The approval was denied, has expired, or no longer covers the call (`approval_denied`, `approval_expired`, `approval_stale`).
 *
 * @example
 * if (denied instanceof ApprovalRefusedError) giveUp(denied.message)
 */
export class ApprovalRefusedError extends DeniedError {
  override readonly name = 'ApprovalRefusedError'
}

/**
 * The token lacks `scopes` (`insufficient_scope`); request a token with them.
 *
 * @example
 * if (denied instanceof ScopeMissingError) requestScopes(denied.scopes)
 */
export class ScopeMissingError extends DeniedError {
  override readonly name = 'ScopeMissingError'
}

/**
 * The token, session, agent, user or all callers are revoked or suspended. A retry does not help.
 *
 * @example
 * if (denied instanceof RevokedError) process.exit(1)
 */
export class RevokedError extends DeniedError {
  override readonly name = 'RevokedError'
}

/**
 * A budget of money or tokens is exhausted (`budget_exceeded`); `retryAfterMs` is the end of its window, if it has one.
 *
 * @example
 * if (denied instanceof BudgetExceededError) comeBackIn(denied.retryAfterMs)
 */
export class BudgetExceededError extends DeniedError {
  override readonly name = 'BudgetExceededError'
}

/**
 * The user must first connect an account at `connectURL` (`upstream_credential` of a server with per-user credentials).
 *
 * @example
 * if (denied instanceof AccountNeededError) showLink(denied.provider, denied.connectURL)
 */
export class AccountNeededError extends DeniedError {
  override readonly name = 'AccountNeededError'
}

type Kind = new (facts: DenialFacts, cause?: unknown) => DeniedError

const kinds: Readonly<Partial<Record<DenialCode, Kind>>> = {
  approval_pending: ApprovalPendingError,
  approval_denied: ApprovalRefusedError,
  approval_expired: ApprovalRefusedError,
  approval_stale: ApprovalRefusedError,
  insufficient_scope: ScopeMissingError,
  revoked: RevokedError,
  suspended: RevokedError,
  budget_exceeded: BudgetExceededError,
}

/** Returns the error of a refusal, of the class for its code. */
export function denialOf(facts: DenialFacts, cause?: unknown): DeniedError {
  const Denied = facts.connectURL !== null ? AccountNeededError : (kinds[facts.code] ?? DeniedError)
  return new Denied(facts, cause)
}
