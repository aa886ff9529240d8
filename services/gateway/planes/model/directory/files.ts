import { isObject, type JsonObject, member } from '@plat/core'
import { type Call, type Denial, deny, isDenial, type Reply } from '../../../call/index.ts'
import { ModelFrame } from '../frame.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import type { Forwarding } from '../upstream/forward.ts'

/** Most files of a page: each is requested from the provider. */
const MAX_PAGE = 20

export interface FileLists {
  /** Returns the ids of files of the caller in an account, the oldest first. */
  filesOf(identity: Call<'identity'>['facts']['identity'], account: string): readonly string[]
  /** Returns the ids of batches of the caller in an account, the oldest first. */
  batchesOf(identity: Call<'identity'>['facts']['identity'], account: string): readonly string[]
}

type ListCall = Call<'identity' | 'target' | 'hold'>

/**
 * Returns a page of the caller's files at an endpoint. The provider's list has the files of all agents of the account, so each file of the caller is
 * requested by its id; one that no longer exists is left out.
 */
export async function listFiles(
  lists: FileLists,
  call: ListCall,
  { endpoint, request }: { readonly endpoint: ModelEndpoint; readonly request: (id: string) => Forwarding | Denial },
): Promise<Reply | Denial> {
  const parameters = new URLSearchParams(call.wire.query)
  const limit = limitOf(parameters.get('limit'))
  if (limit === null)
    return deny('invalid_request', 'limit must be a whole number above 0', { data: { param: 'limit' } })
  const isBatches = call.operation === 'model.batch'
  const { identity } = call.facts
  const all = isBatches ? lists.batchesOf(identity, endpoint.account) : lists.filesOf(identity, endpoint.account)
  const ordered = parameters.get('order') === 'asc' ? all : all.toReversed()
  const after = parameters.get('after') ?? parameters.get('after_id')
  const start = after === null ? 0 : ordered.indexOf(after) + 1
  if (after !== null && start === 0) return deny('not_found', isBatches ? 'no such batch' : 'no such file')
  const ids = ordered.slice(start, start + limit)
  const forwardings = ids.map(request)
  const refused = forwardings.find(isDenial)
  if (refused !== undefined) return refused
  const replies = await Promise.all(forwardings.map((one) => (isDenial(one) ? one : one.run())))
  const failed = replies.find(isDenial)
  if (failed !== undefined) return failed
  const data: JsonObject[] = []
  const attempts = []
  for (const reply of replies) {
    if (isDenial(reply)) continue
    attempts.push(...reply.attempts)
    const file = fileIn(reply)
    if (file !== null && isWanted(file, parameters.get('purpose'))) data.push(file)
  }
  const ends = { has_more: start + limit < ordered.length, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null }
  const list = { ...(endpoint.provider !== 'anthropic' && { object: 'list' }), data, ...ends }
  const frames = [ModelFrame.body(Buffer.from(JSON.stringify(list)))]
  return { kind: 'frames', head: { status: 200, headers: { 'content-type': 'application/json' } }, frames, attempts }
}

/** Clients request up to 10,000 at a time, and read further pages. */
function limitOf(text: string | null): number | null {
  if (text === null) return MAX_PAGE
  return /^[1-9]\d{0,4}$/.test(text) ? Math.min(Number(text), MAX_PAGE) : null
}

function fileIn(reply: Reply): JsonObject | null {
  if (reply.kind !== 'frames' || reply.head.status !== 200 || !Array.isArray(reply.frames)) return null
  const value: unknown = reply.frames[0]?.value
  return isObject(value) ? value : null
}

function isWanted(file: JsonObject, purpose: string | null): boolean {
  return purpose === null || member(file, 'purpose') === purpose
}
