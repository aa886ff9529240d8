import { type ErrorCode, errorTable } from '../call/index.ts'

/** Codes of the admin API: those of the data plane, and one for people whose login is not enough (docs/admin.md, "Step-up"). */
type AdminErrorCode = ErrorCode | 'step_up_required'

/** A refusal of the admin API: thrown by a handler, answered as `{error, message, requestId}` with the status of its row. */
export class AdminError extends Error {
  readonly code: AdminErrorCode
  /** Further members of the response. */
  readonly details: Readonly<Record<string, unknown>>

  /** `message`: one sentence for the caller. */
  constructor(code: AdminErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.code = code
    this.details = details
  }

  get status(): number {
    return this.code === 'step_up_required' ? 403 : errorTable[this.code].status
  }
}
