import { type Body, type Denial, type Head, statusOf } from '../../call/index.ts'
import { STREAM_HEADERS } from '../wire/headers.ts'
import { refusalHeaders } from '../wire/refusal.ts'
import { commentEvent } from '../wire/sse.ts'
import { chat } from './dialects/chat.ts'
import type { Dialect } from './dialects/dialect.ts'
import { ModelFrame } from './frame.ts'
import { ModelBody } from './request.ts'

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
export function terminalError(denial: Denial, body: Body | null): ModelFrame {
  const dialect = body instanceof ModelBody ? body.dialect : chat
  return ModelFrame.errorEvent(Buffer.from(dialect.errorEvent(errorJson(denial, dialect))))
}

/** Returns the head and the heartbeat of a stream whose call waits for approval; null for a request of a whole answer. */
export function pendingStream(body: Body | null) {
  if (!(body instanceof ModelBody) || !body.request.stream) return null
  const heartbeat = () => ModelFrame.event('progress', commentEvent('waiting for approval'), null)
  return { head: { status: 200, headers: STREAM_HEADERS }, heartbeat }
}
