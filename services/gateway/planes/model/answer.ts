import { type Denial, type Head, statusOf } from '../../call/index.ts'
import { refusalHeaders } from '../wire/refusal.ts'
import { ModelFrame } from './frame.ts'

/** OpenAI's word for what went wrong, by status; clients choose their exceptions by the status itself. */
function typeOf({ code }: Denial, status: number): string {
  if (code === 'budget_exceeded') return 'insufficient_quota'
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

/** The error object of OpenAI's API, with plat's code. */
function errorObject(denial: Denial): Uint8Array {
  const { code, reason, data } = denial
  const param = typeof data?.param === 'string' ? data.param : null
  const approval = typeof data?.approvalId === 'string' ? { approval_id: data.approvalId } : null
  const error = { message: reason, type: typeOf(denial, statusOf(denial)), param, code, ...approval }
  return Buffer.from(JSON.stringify({ error }))
}

/** The answer to a refused request while no head has been sent. */
export function refusal(denial: Denial): { readonly head: Head; readonly frame: ModelFrame } {
  const headers = refusalHeaders(denial)
  if (denial.code === 'method_not_allowed' && typeof denial.data?.allow === 'string') headers.allow = denial.data.allow
  return { head: { status: statusOf(denial), headers }, frame: ModelFrame.body('error', errorObject(denial)) }
}

/** The terminal error of a stream whose head has been sent. No `[DONE]` follows: clients would take the answer for complete. */
export function terminalError(denial: Denial): ModelFrame {
  return ModelFrame.errorEvent(Buffer.concat([Buffer.from('data: '), errorObject(denial), Buffer.from('\n\n')]))
}
