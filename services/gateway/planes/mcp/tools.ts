import { checkJson, parseLossless } from '@plat/core'
import { type Call, type Credential, type Denial, deny, isDenial } from '../../call/index.ts'
import { EventFrames } from '../wire/events.ts'
import type { UpstreamExchange } from '../wire/exchange.ts'
import { isJsonType } from '../wire/headers.ts'
import { isObject, member } from '../wire/json.ts'
import {
  type Forwarder,
  faultOf,
  isStream,
  MAX_ANSWER_BYTES,
  type McpUpstream,
  openExchange,
  unusable,
  unusableAnswer,
} from './forward.ts'
import { McpFrame } from './frames/frame.ts'
import { upstreamHeaders } from './headers.ts'
import type { McpRequest } from './message.ts'

/** Pages of one list that are read; a list that goes on is no list. */
const MAX_PAGES = 64
/** Wait for one page, in milliseconds. */
const PAGE_TIMEOUT_MS = 10_000

/** Whose session and revision the question uses. */
export interface Asker {
  readonly call: Pick<Call<'identity' | 'target'>, 'server' | 'wire' | 'body'>
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
  let cursor: string | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await pageOf(forwarder, asker, cursor)
    if (isDenial(result)) return result
    const listed = member(result, 'tools')
    if (!Array.isArray(listed)) return deny('upstream_error', `${server} did not list its tools`)
    tools.push(...listed)
    const next = member(result, 'nextCursor')
    if (typeof next !== 'string') return tools
    cursor = next
  }
  return deny('upstream_error', `${server} lists tools without end`)
}

async function pageOf(forwarder: Forwarder, asker: Asker, cursor: string | null): Promise<object | Denial> {
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
    if (isStream(head)) return answerIn(await finalOf(exchange), server)
    if (!isJsonType(head.headers)) return unusableAnswer(server)
    return answerIn(await exchange.readAll(MAX_ANSWER_BYTES), server)
  } catch (error) {
    return faultOf(server, error)
  } finally {
    stopTimer()
    exchange?.abort('the list has come')
  }
}

function headersOf({ call, request }: Asker): Record<string, string> {
  const { headers } = call.wire
  const own = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': headers['mcp-protocol-version'] }
  return upstreamHeaders(own, { ...request, kind: 'request', method: 'tools/list', name: null, lastEvent: null })
}

/** From 2026-07-28 on each message says who asks: as the caller's own says. */
function questionOf({ call, request }: Asker, cursor: string | null): Uint8Array {
  const meta = request.era === 'modern' ? member(member(call.body?.value, 'params'), '_meta') : undefined
  const { progressToken: _, ..._meta }: { progressToken?: unknown } = isObject(meta) ? meta : {}
  const params = { ...(cursor !== null && { cursor }), ...(request.era === 'modern' && { _meta }) }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'plat-tools', method: 'tools/list', params }))
}

/** The message of a stream that is the answer; null where the stream ends without one. */
async function finalOf(exchange: UpstreamExchange): Promise<Uint8Array | null> {
  const gate = { pass: (event: Uint8Array) => McpFrame.event(event), ended() {}, stop() {} }
  for await (const frames of new EventFrames(exchange, gate)) {
    const final = frames.find((frame) => frame.role === 'final')
    if (final instanceof McpFrame) return final.json
  }
  return null
}

function answerIn(json: Uint8Array | null, server: string): object | Denial {
  if (json === null) return unusableAnswer(server)
  checkJson(json)
  const result = member(parseLossless(json), 'result')
  return isObject(result) ? result : deny('upstream_error', `${server} did not list its tools`)
}
