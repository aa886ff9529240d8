import { PlatError } from '../error.ts'
import type { DenialCode } from './codes.ts'

/** What a refusal says, in whatever dialect it came. */
export interface DenialFacts {
  readonly code: DenialCode
  /** The gateway's own words, for people. */
  readonly message: string
  /** HTTP status that the refusal stands for, also where it came as a JSON-RPC error on HTTP 200; 0: not told. */
  readonly status: number
  /** The policy and the rule that refused; null: none did, or the dialect has no place for them. */
  readonly policy: string | null
  readonly rule: string | null
  /** By which the call stands in the ledger. */
  readonly decisionId: string | null
  /** When to try again, in milliseconds; null: a retry changes nothing, or nobody knows when. */
  readonly retryAfterMs: number | null
  readonly approvalId: string | null
  /** Scopes that were missing. */
  readonly scopes: readonly string[]
  /** Where the user connects his account, and with whom. */
  readonly connectURL: string | null
  readonly provider: string | null
}

/**
 * The gateway refused the call.
 *
 * @example
 * try {
 *   await client.callTool({ name: 'delete_note', arguments: { name: 'old' } })
 * } catch (error) {
 *   const denied = deniedBy(error)
 *   if (denied === null) throw error
 *   console.log(denied.code, denied.rule, denied.decisionId)
 * }
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
 * The call waits for a person (`approval_pending`): `approvalId` names the question. The same call, made again, picks the answer up: see
 * {@link untilApproved}.
 *
 * @example
 * if (denied instanceof ApprovalPendingError) tellUser(`approval ${denied.approvalId} is open`)
 */
export class ApprovalPendingError extends DeniedError {
  override readonly name = 'ApprovalPendingError'
}

/**
 * A person said no, nobody decided in time, or the approval is for something else by now (`approval_denied`, `approval_expired`,
 * `approval_stale`).
 *
 * @example
 * if (denied instanceof ApprovalRefusedError) giveUp(denied.message)
 */
export class ApprovalRefusedError extends DeniedError {
  override readonly name = 'ApprovalRefusedError'
}

/**
 * The token lacks `scopes` (`insufficient_scope`): step-up is asking whoever grants them.
 *
 * @example
 * if (denied instanceof ScopeMissingError) askFor(denied.scopes)
 */
export class ScopeMissingError extends DeniedError {
  override readonly name = 'ScopeMissingError'
}

/**
 * Token, session, agent, user or everybody was revoked or suspended: nothing helps but a person.
 *
 * @example
 * if (denied instanceof Revoked) process.exit(1)
 */
export class RevokedError extends DeniedError {
  override readonly name = 'RevokedError'
}

/**
 * Money or tokens are used up (`budget_exceeded`); `retryAfterMs` tells when the window ends, where it has an end.
 *
 * @example
 * if (denied instanceof BudgetExceededError) comeBackIn(denied.retryAfterMs)
 */
export class BudgetExceededError extends DeniedError {
  override readonly name = 'BudgetExceededError'
}

/**
 * The user has to connect an account first: send him to `connectURL` (`upstream_credential` of a server that acts for each user).
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

/** The error of a refusal, of the class that its code has. */
export function denialOf(facts: DenialFacts, cause?: unknown): DeniedError {
  const Denied = facts.connectURL !== null ? AccountNeededError : (kinds[facts.code] ?? DeniedError)
  return new Denied(facts, cause)
}
