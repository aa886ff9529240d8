import type { TraceContext } from '../../call/index.ts'
import { type JsonObject, member } from '../wire/json.ts'
import type { McpRequest } from './message.ts'

const PATH = ['params', '_meta', 'traceparent'] as const

/**
 * The same request, as far as its message names a trace (revision 2026-07-28, `params._meta`): what it says goes before the headers, and the
 * server is told of the gateway's span in the same place.
 */
export function traced(request: McpRequest, { params }: JsonObject, trace: TraceContext): McpRequest {
  const meta = member(params, '_meta')
  const traceparent = member(meta, 'traceparent')
  if (typeof traceparent !== 'string') return request
  const state = member(meta, 'tracestate')
  trace.adopt(traceparent, typeof state === 'string' ? state : '')
  if (trace.traceparent === null) return request
  const replacement = { path: PATH, with: Buffer.from(JSON.stringify(trace.traceparent)) }
  return { ...request, replaced: [...request.replaced, replacement] }
}
