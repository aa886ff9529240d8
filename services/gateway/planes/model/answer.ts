import { type Body, type Call, type Denial, type Head, statusOf } from '../../call/index.ts'
import { STREAM_HEADERS } from '../wire/message.ts'
import { refusalHeaders } from '../wire/refusal.ts'
import { textOf } from '../wire/refusal-text.ts'
import { commentEvent } from '../wire/sse.ts'
import { dialectOfRequest } from './dialects/all.ts'
import { chat } from './dialects/chat.ts'
import type { Dialect } from './dialects/dialect.ts'
import { ModelFrame } from './frame.ts'
import { isForwarded } from './note.ts'
import { ModelBody } from './request.ts'

export interface RefusedModelCall {
  /** The call, or the request that was not read. */
  readonly call: Pick<Call, 'id' | 'wire'> & Partial<Pick<Call, 'name'>>
  readonly denial: Denial
  readonly dialect: Dialect
  /** Milliseconds since the epoch. */
  readonly now: number
}

function errorJson({ call, denial, dialect, now }: RefusedModelCall): string {
  const subject = { kind: 'model', name: call.name ?? null } as const
  const progress = isForwarded(call.wire) ? 'upstream' : 'unsent'
  const message = textOf({ subject, denial, decisionId: call.id, progress, now })
  return JSON.stringify(dialect.errorBody({ denial, status: statusOf(denial), message, decisionId: call.id }))
}

/** The response to a refused request while no head has been sent. Clients show the id of a request, which is that of the decision. */
export function refusal(request: Omit<RefusedModelCall, 'dialect'>): {
  readonly head: Head
  readonly frame: ModelFrame
} {
  const { call, denial } = request
  const dialect = dialectOfRequest(call.wire)
  const headers = refusalHeaders(denial)
  if (denial.code === 'method_not_allowed' && typeof denial.data?.allow === 'string') headers.allow = denial.data.allow
  headers[dialect.idHeader] = call.id
  return {
    head: { status: statusOf(denial), headers },
    frame: ModelFrame.error(Buffer.from(errorJson({ ...request, dialect }))),
  }
}

/** The terminal error of a stream whose head has been sent. Nothing follows that says its end: clients would take the answer for complete. Null: sound has none. */
export function terminalError(call: Call, denial: Denial, now: number): ModelFrame | null {
  const { body } = call
  if (call.method === 'files/content' || call.method === 'messages/batches/results') return null
  if (body instanceof ModelBody && body.dialect.answer?.(body.value) === 'audio') return null
  const dialect = call.body instanceof ModelBody ? call.body.dialect : chat
  return ModelFrame.errorEvent(Buffer.from(dialect.errorEvent(errorJson({ call, denial, dialect, now }))))
}

/** Returns the head and the heartbeat of a stream whose call waits for approval; null for a request of a whole answer. */
export function pendingStream(body: Body | null) {
  if (!(body instanceof ModelBody) || !body.request.stream) return null
  const heartbeat = () => ModelFrame.event('progress', commentEvent('waiting for approval'), null)
  return { head: { status: 200, headers: STREAM_HEADERS }, heartbeat }
}
