import { isObject, member, parseLossless } from '@plat/core'
import type { RequestHeaders } from '@plat/http'
import { type Call, type Credential, type Denial, deny, type Identity, isDenial } from '../../../call/index.ts'
import { EventFrames } from '../../wire/events.ts'
import { type UpstreamExchange, wholeBodyDenial } from '../../wire/exchange.ts'
import { isJsonType } from '../../wire/message.ts'
import { unusable } from '../../wire/refusal.ts'
import { McpFrame } from '../frames/frame.ts'
import { McpResponse } from '../frames/response.ts'
import { upstreamHeaders } from '../headers.ts'
import { type McpRequest, parsedId } from '../message.ts'
import { isStream, MAX_RESPONSE_BYTES } from './forward.ts'
import { type Forwarder, faultOf, type McpUpstream, openExchange, stdioFailure, unusableResponse } from './open.ts'

/** Maximum number of pages of one list; a longer list is refused. */
const MAX_PAGES = 64
/** Maximum number of tools of one list, over all pages. */
const MAX_TOOLS = 10_000
/** Largest list, over all pages, in bytes. */
const MAX_LIST_BYTES = MAX_RESPONSE_BYTES
/** Time limit for one page, in milliseconds. */
const PAGE_TIMEOUT_MS = 10_000
/** JSON-RPC id of the gateway's request. */
const LIST_ID = 'plat-tools'
const LIST_ID_AWAITED = parsedId(Buffer.from(JSON.stringify(LIST_ID)))

/** The call on whose session and in whose revision the tools are requested. */
export interface ListRequester {
  readonly call: Pick<Call<'identity' | 'target'>, 'server' | 'wire' | 'body' | 'retain'>
  readonly request: McpRequest
  readonly upstream: McpUpstream
  readonly credential: Credential
  readonly identity: Identity
}

/**
 * Requests all pages of a server's tools on the caller's session and in its revision, so that the result is what the server offers this
 * caller. Numbers keep their source text (`parseLossless`). Never rejects.
 */
export async function listTools(forwarder: Forwarder, asker: ListRequester): Promise<readonly unknown[] | Denial> {
  const { server } = asker.call
  const tools: unknown[] = []
  let maxBytes = MAX_LIST_BYTES
  let cursor: string | null = null
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await pageOf(forwarder, asker, { cursor, maxBytes })
    if (isDenial(page)) return page
    if (tools.length + page.tools.length > MAX_TOOLS) return tooLong(server)
    for (const tool of page.tools) tools.push(tool)
    if (page.next === null) return tools
    maxBytes -= page.bytes
    cursor = page.next
  }
  return tooLong(server)
}

function tooLong(server: string): Denial {
  return deny('upstream_error', `${server} lists more tools than the limit`)
}

interface Page {
  readonly tools: readonly unknown[]
  /** Cursor of the next page; null: this is the last page. */
  readonly next: string | null
  readonly bytes: number
}

interface Turn {
  /** Null for the first page. */
  readonly cursor: string | null
  readonly maxBytes: number
}

async function pageOf(forwarder: Forwarder, asker: ListRequester, { cursor, maxBytes }: Turn): Promise<Page | Denial> {
  const { server } = asker.call
  let exchange: UpstreamExchange | null = null
  const stopTimer = forwarder.clock.after(PAGE_TIMEOUT_MS, () => exchange?.abort('the list takes too long'))
  try {
    exchange = openExchange(forwarder, asker, {
      method: 'POST',
      headers: headersOf(asker),
      body: listRequest(asker, cursor),
    })
    const head = await exchange.head
    const refusal = stdioFailure(server, asker.upstream, head) ?? unusable(server, head)
    if (refusal !== null) return refusal
    const { era } = asker.request
    const response = new McpResponse({ id: LIST_ID_AWAITED, method: 'tools/list', era })
    if (!isStream(head)) {
      if (!isJsonType(head.headers)) return unusableResponse(server)
      const whole = await exchange.readAll({ maxBytes, account: asker.call })
      if (whole === 'memory') return wholeBodyDenial(server, whole)
      return whole === 'too_large' ? tooLong(server) : pageIn(response.body(whole), { server, maxBytes })
    }
    const final = await finalOf(exchange, response)
    return final === null ? unusableResponse(server) : pageIn(final, { server, maxBytes })
  } catch (error) {
    return faultOf(server, error)
  } finally {
    stopTimer()
    exchange?.abort('the list has come')
  }
}

function headersOf({ call, request }: ListRequester): RequestHeaders {
  const { headers } = call.wire
  const own = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': headers['mcp-protocol-version'] }
  return upstreamHeaders(own, { ...request, kind: 'request', method: 'tools/list', name: null, lastEvent: null })
}

/** Returns the request for a page. From revision 2026-07-28 on, it has the `_meta` of the caller's request. */
function listRequest({ call, request }: ListRequester, cursor: string | null): Uint8Array {
  const meta = request.era === 'modern' ? member(member(call.body?.value, 'params'), '_meta') : undefined
  const { progressToken: _, ..._meta }: { progressToken?: unknown } = isObject(meta) ? meta : {}
  const params = { ...(cursor !== null && { cursor }), ...(request.era === 'modern' && { _meta }) }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: LIST_ID, method: 'tools/list', params }))
}

/** Returns the response of a stream; null if the stream ends without one. */
async function finalOf(exchange: UpstreamExchange, response: McpResponse): Promise<McpFrame | null> {
  const gate = { pass: (event: Uint8Array) => response.event(event), ended: () => undefined, stop() {} }
  for await (const frames of new EventFrames(exchange, gate)) {
    const final = frames.find((frame) => frame.role === 'final')
    if (final instanceof McpFrame) return final
  }
  return null
}

function pageIn(
  { json, value }: McpFrame,
  { server, maxBytes }: { readonly server: string; readonly maxBytes: number },
): Page | Denial {
  if (json === null || member(value, 'error') !== undefined)
    return deny('upstream_error', `${server} did not list its tools`)
  if (json.length > maxBytes) return tooLong(server)
  const result = member(parseLossless(json), 'result')
  const tools = member(result, 'tools')
  if (!Array.isArray(tools)) return deny('upstream_error', `${server} did not list its tools`)
  const next = member(result, 'nextCursor')
  return { tools, next: typeof next === 'string' ? next : null, bytes: json.length }
}
