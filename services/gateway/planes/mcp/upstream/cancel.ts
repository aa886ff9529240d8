import type { RequestHeaders } from '@plat/http'
import { callerOf, type Identity, isDenial } from '../../../call/index.ts'
import { isModernRevision } from '../classify.ts'
import { encodeMirrored } from '../headers.ts'
import { META_CAPABILITIES, META_VERSION } from '../message.ts'
import { TASKS_EXTENSION } from '../tasks/status.ts'
import type { CancelledTask } from '../tasks/tasks.ts'
import { type Forwarder, type McpUpstream, openExchange } from './open.ts'

/** Time limit for the response, in milliseconds. */
const CANCEL_MS = 10_000
const METHOD = 'tasks/cancel'
/** Statuses from which on the server has not processed the request. */
const SERVER_ERROR = 500

/** Requests a task's cancellation for its owner; `upstream` is null if the server is unknown now. Resolves to false if the server did not process the request. Never rejects. */
export async function cancelAt(
  forwarder: Forwarder,
  {
    upstream,
    task,
    owner,
  }: { readonly upstream: McpUpstream | null; readonly task: CancelledTask; readonly owner: Identity },
): Promise<boolean> {
  // Without the server there is nothing to cancel.
  if (upstream === null || upstream.builtin) return true
  try {
    const credential = await forwarder.credentials.of(upstream, owner)
    if (isDenial(credential)) return false
    const way = { upstream, credential, identity: owner, caller: callerOf(owner) }
    const request = { method: 'POST', headers: headersOf(task), body: bodyOf(task) } as const
    const exchange = openExchange(forwarder, way, request)
    const stopTimer = forwarder.clock.after(CANCEL_MS, () => exchange.abort('the server did not respond'))
    try {
      const { status } = await exchange.head
      return status < SERVER_ERROR
    } finally {
      stopTimer()
      exchange.abort('the response is not needed')
    }
  } catch {
    return false
  }
}

function headersOf({ revision, session, id }: CancelledTask): RequestHeaders {
  const isModern = isModernRevision(revision)
  return {
    'user-agent': 'plat-gateway',
    'accept-encoding': 'identity',
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': revision,
    'mcp-method': isModern ? METHOD : undefined,
    'mcp-name': isModern ? encodeMirrored(id) : undefined,
    'mcp-session-id': session?.id,
  }
}

function bodyOf({ revision, id: taskId }: CancelledTask): Uint8Array {
  const capabilities = { extensions: { [TASKS_EXTENSION]: {} } }
  const _meta = isModernRevision(revision) ? { [META_VERSION]: revision, [META_CAPABILITIES]: capabilities } : undefined
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'plat-cancel', method: METHOD, params: { taskId, _meta } }))
}
