import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from '../local.ts'

/** Request received by the server. */
export interface AnthropicCall {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
}

/** How the next calls are answered. */
export interface AnthropicScript {
  /** The pieces of the text; a stream sends one delta for each. */
  readonly text: readonly string[]
  /** Events of a stream after which it fails with an `error` event. */
  readonly failsAfter?: number
  /** Events of a stream after which the connection is destroyed. */
  readonly diesAfter?: number
}

/** A server that stands for Anthropic's API as it is published: it wants a version, a key and `max_tokens`. */
export interface AnthropicServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  readonly calls: readonly AnthropicCall[]
  answers(script: AnthropicScript): void
  close(): Promise<void>
}

const JSON_TYPE = { 'content-type': 'application/json', 'request-id': 'req_testkit' }
/** Ten tokens that were neither read from a cache nor written to it, four that were read, two that were written. */
const INPUT = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 }

/** Starts it on a free port. */
export async function startAnthropicServer(apiKey: string): Promise<AnthropicServer> {
  const calls: AnthropicCall[] = []
  let script: AnthropicScript = { text: ['Hello', ' world'] }
  const server = createServer(async (request, response) => {
    const call = await received(request)
    calls.push(call)
    const fault = faultOf(call, apiKey)
    if (fault !== null) return refuse(response, ...fault)
    respond(call, script, response)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    answers(next) {
      script = next
    },
    close: () => closed(server),
  }
}

async function received(request: IncomingMessage): Promise<AnthropicCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  return { path: request.url ?? '', headers: request.headers, body: JSON.parse(text === '' ? '{}' : text) }
}

type Fault = readonly [status: number, type: string, message: string]

function faultOf({ path, headers, body }: AnthropicCall, apiKey: string): Fault | null {
  if (headers['x-api-key'] !== apiKey) return [401, 'authentication_error', 'invalid x-api-key']
  if (headers['anthropic-version'] === undefined)
    return [400, 'invalid_request_error', 'anthropic-version: header is required']
  if (path.startsWith('/v1/models')) return null
  if (path !== '/v1/messages' && path !== '/v1/messages/count_tokens') return [404, 'not_found_error', 'Not Found']
  if (typeof body.model !== 'string') return [400, 'invalid_request_error', 'model: Field required']
  if (path === '/v1/messages' && typeof body.max_tokens !== 'number')
    return [400, 'invalid_request_error', 'max_tokens: Field required']
  return Array.isArray(body.messages) ? null : [400, 'invalid_request_error', 'messages: Field required']
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  response.writeHead(status, JSON_TYPE).end(JSON.stringify({ type: 'error', error: { type, message } }))
}

function respond({ path, body }: AnthropicCall, script: AnthropicScript, response: ServerResponse): void {
  const json = (value: object) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(value))
  if (path.startsWith('/v1/models')) {
    const data = [{ type: 'model', id: 'claude-test', display_name: 'Test', created_at: '2026-01-01T00:00:00Z' }]
    json({ data, has_more: false, first_id: 'claude-test', last_id: 'claude-test' })
  } else if (path.endsWith('/count_tokens')) json({ input_tokens: 10 })
  else if (body.stream === true) stream(script, String(body.model), response)
  else {
    const content = [{ type: 'text', text: script.text.join('') }]
    json({ ...message(String(body.model)), content, stop_reason: 'end_turn', usage: usage(script.text.length) })
  }
}

function message(model: string) {
  const empty = { content: [], stop_reason: null, stop_sequence: null }
  return { id: 'msg_testkit', type: 'message', role: 'assistant', model, ...empty, usage: usage(1) }
}

function usage(output: number) {
  return { ...INPUT, output_tokens: output, service_tier: 'standard' }
}

/** The events of a stream, in their published order. */
function stream({ text, failsAfter, diesAfter }: AnthropicScript, model: string, response: ServerResponse): void {
  const events = [
    { type: 'message_start', message: message(model) },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...text.map((piece) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: text.length },
    },
    { type: 'message_stop' },
  ]
  const sent = events.slice(0, failsAfter ?? diesAfter ?? events.length)
  const failure = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const chunks = failsAfter === undefined ? sent : [...sent, failure]
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'request-id': 'req_testkit' })
  for (const event of chunks) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  if (diesAfter === undefined) response.end()
  else setImmediate(() => response.destroy())
}
