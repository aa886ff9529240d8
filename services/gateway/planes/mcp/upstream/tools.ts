import { parseLossless } from '@plat/core'
import type { RequestHeaders } from '@plat/http'
import { type Call, type Credential, type Denial, deny, isDenial } from '../../../call/index.ts'
import { EventFrames } from '../../wire/events.ts'
import { type UpstreamExchange, wholeBodyDenial } from '../../wire/exchange.ts'
import { isJsonType } from '../../wire/headers.ts'
import { isObject, member } from '../../wire/json.ts'
import { unusable } from '../../wire/refusal.ts'
import { McpFrame } from '../frames/frame.ts'
import { McpResponse } from '../frames/response.ts'
import { upstreamHeaders } from '../headers.ts'
import { type McpRequest, parsedId } from '../message.ts'
import { faultOf, isStream, MAX_ANSWER_BYTES, unusableAnswer } from './forward.ts'
import { type Forwarder, type McpUpstream, openExchange } from './open.ts'

/** Pages of one list that are read; a list that goes on is no list. */
const MAX_PAGES = 64
/** Tools of one list, all pages together. */
const MAX_TOOLS = 10_000
/** Largest list, all pages together, in bytes. */
const MAX_LIST_BYTES = MAX_ANSWER_BYTES
/** Wait for one page, in milliseconds. */
const PAGE_TIMEOUT_MS = 10_000
/** JSON-RPC id of the gateway's own question. */
const LIST_ID = 'plat-tools'
const LIST_ID_AWAITED = parsedId(Buffer.from(JSON.stringify(LIST_ID)))

/** Whose session and revision the question uses. */
export interface Asker {
  readonly call: Pick<Call<'identity' | 'target'>, 'server' | 'wire' | 'body' | 'retain'>
  readonly request: McpRequest
  readonly upstream: McpUpstream
  readonly credential: Credential
}

/**
 * Asks a server for its tools, all pages, as the caller would: on its session and in its revision, so that the answer is what this
 * caller would be offered. Numbers keep their source text (`parseLossless`). Never throws.
 */
export async function listTools(forwarder: Forwarder, asker: Asker): Promise<readonly unknown[] | Denial> {
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
  return deny('upstream_error', `${server} lists more tools than are read`)
}

interface Page {
  readonly tools: readonly unknown[]
  /** Null: it is the last one. */
  readonly next: string | null
  readonly bytes: number
}

interface Turn {
  /** Null: the first page. */
  readonly cursor: string | null
  readonly maxBytes: number
}

async function pageOf(forwarder: Forwarder, asker: Asker, { cursor, maxBytes }: Turn): Promise<Page | Denial> {
  const { server } = asker.call
  let exchange: UpstreamExchange | null = null
  const stopTimer = forwarder.clock.after(PAGE_TIMEOUT_MS, () => exchange?.abort('the list takes too long'))
  try {
    exchange = openExchange(forwarder, asker, {
      method: 'POST',
      headers: headersOf(asker),
      body: questionOf(asker, cursor),
    })
    const head = await exchange.head
    const refusal = unusable(server, head)
    if (refusal !== null) return refusal
    const { era } = asker.request
    const response = new McpResponse({ id: LIST_ID_AWAITED, method: 'tools/list', era })
    if (!isStream(head)) {
      if (!isJsonType(head.headers)) return unusableAnswer(server)
      const whole = await exchange.readAll({ maxBytes, account: asker.call })
      if (whole === 'memory') return wholeBodyDenial(server, whole)
      return whole === 'too_large' ? tooLong(server) : pageIn(response.body(whole), { server, maxBytes })
    }
    const final = await finalOf(exchange, response)
    return final === null ? unusableAnswer(server) : pageIn(final, { server, maxBytes })
  } catch (error) {
    return faultOf(server, error)
  } finally {
    stopTimer()
    exchange?.abort('the list has come')
  }
}

function headersOf({ call, request }: Asker): RequestHeaders {
  const { headers } = call.wire
  const own = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': headers['mcp-protocol-version'] }
  return upstreamHeaders(own, { ...request, kind: 'request', method: 'tools/list', name: null, lastEvent: null })
}

/** From 2026-07-28 on each message says who asks: as the caller's own says. */
function questionOf({ call, request }: Asker, cursor: string | null): Uint8Array {
  const meta = request.era === 'modern' ? member(member(call.body?.value, 'params'), '_meta') : undefined
  const { progressToken: _, ..._meta }: { progressToken?: unknown } = isObject(meta) ? meta : {}
  const params = { ...(cursor !== null && { cursor }), ...(request.era === 'modern' && { _meta }) }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: LIST_ID, method: 'tools/list', params }))
}

/** The response of a stream; null where the stream ends without one. */
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
