import { type Denial, type Head, statusOf } from '../../call/index.ts'
import { refusalHeaders } from '../wire/refusal.ts'
import type { Dialect } from './dialects/dialect.ts'
import { ModelFrame } from './frame.ts'

function errorJson(denial: Denial, dialect: Dialect): string {
  return JSON.stringify(dialect.errorBody(denial, statusOf(denial)))
}

/** The answer to a refused request while no head has been sent. */
export function refusal(denial: Denial, dialect: Dialect): { readonly head: Head; readonly frame: ModelFrame } {
  const headers = refusalHeaders(denial)
  if (denial.code === 'method_not_allowed' && typeof denial.data?.allow === 'string') headers.allow = denial.data.allow
  return {
    head: { status: statusOf(denial), headers },
    frame: ModelFrame.error(Buffer.from(errorJson(denial, dialect))),
  }
}

/** The terminal error of a stream whose head has been sent. Nothing follows that says its end: clients would take the answer for complete. */
export function terminalError(denial: Denial, dialect: Dialect): ModelFrame {
  return ModelFrame.errorEvent(Buffer.from(dialect.errorEvent(errorJson(denial, dialect))))
}
