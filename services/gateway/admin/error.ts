import { type ErrorCode, errorTable } from '../call/index.ts'

/** A refusal of the admin API: thrown by a handler, answered as `{error, message, requestId}` with the status of its row. */
export class AdminError extends Error {
  readonly code: ErrorCode

  /** `message`: one sentence for the caller. */
  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }

  get status(): number {
    return errorTable[this.code].status
  }
}
