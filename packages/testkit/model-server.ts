import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'
import { type ApiError, judge, wrongKey } from './model/judge.ts'
import { completion, events, type ModelPrompt, type ModelReply, splitInto } from './model/reply.ts'

/** Request received by the server. */
export interface ModelCall {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body's bytes, as text. */
  readonly body: string
  /** True once the connection was lost before the answer was complete. */
  aborted: boolean
}

/** A model server that is as strict as the one it stands for, and says what its script says. */
export interface ModelServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  readonly calls: readonly ModelCall[]
  /** The next calls are answered so. */
  answers(answer: ModelReply | ((call: ModelCall) => ModelReply)): void
  /** The `count`th call (from 1), once it has come. */
  call(count: number): Promise<ModelCall>
  close(): Promise<void>
}

/** Starts a model server on a free port. Without `apiKey` it requires none. */
export async function startModelServer({ apiKey }: { readonly apiKey?: string } = {}): Promise<ModelServer> {
  const calls: ModelCall[] = []
  let script: (call: ModelCall) => ModelReply = () => ({ text: ['Hello', ' world', '.'] })
  let arrived = Promise.withResolvers<void>()
  const server = createServer(async (request, response) => {
    const call = await received(request)
    response.once('close', () => {
      call.aborted = !response.writableFinished
    })
    calls.push(call)
    arrived.resolve()
    arrived = Promise.withResolvers()
    const key = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (apiKey !== undefined && key !== apiKey) return refuse(response, wrongKey(key))
    await respond(call, response, script)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    answers(answer) {
      script = typeof answer === 'function' ? answer : () => answer
    },
    async call(count) {
      for (;;) {
        const one = calls[count - 1]
        if (one !== undefined) return one
        await arrived.promise
      }
    },
    async close() {
      await closed(server)
    },
  }
}

async function received(request: IncomingMessage): Promise<ModelCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { url = '', headers } = request
  return { path: url, headers, body: Buffer.concat(chunks).toString('utf8'), aborted: false }
}

async function respond(
  call: ModelCall,
  response: ServerResponse,
  script: (call: ModelCall) => ModelReply,
): Promise<void> {
  if (call.path === '/v1/models') return models(response)
  if (call.path !== '/v1/chat/completions') {
    return refuse(response, { status: 404, message: `Invalid URL (${call.path})`, ...INVALID })
  }
  const body: Readonly<Record<string, unknown>> = JSON.parse(call.body)
  const fault = judge(body)
  if (fault !== null) return refuse(response, fault)
  const answer = script(call)
  if (answer.after !== undefined) await answer.after
  if (answer.error !== undefined && answer.text.length === 0) {
    const { status, message, headers } = answer.error
    return refuse(response, { status, message, type: 'server_error', param: null, code: null }, headers)
  }
  const options = body.stream_options
  const usageRequested = typeof options === 'object' && options !== null && 'include_usage' in options
  const requested: ModelPrompt = {
    model: String(body.model),
    choices: Number(body.n ?? 1),
    usageRequested: usageRequested && options.include_usage === true,
  }
  if (body.stream === true) return stream(answer, requested, response)
  response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'req_testkit' })
  response.end(completion(answer, requested))
}

async function stream(answer: ModelReply, requested: ModelPrompt, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-request-id': 'req_testkit' })
  const chunks = events(answer, requested)
  if (answer.error !== undefined) {
    chunks.splice(
      -2,
      2,
      `data: ${JSON.stringify({ error: { message: answer.error.message, type: 'server_error' } })}\n\n`,
    )
  }
  const bytes = Buffer.from(chunks.join(''))
  const prefix = bytes.subarray(0, answer.diesAfter ?? bytes.length)
  const parts = answer.split === undefined ? chunks.map((event) => Buffer.from(event)) : splitInto(prefix, answer.split)
  let sent = 0
  for (const part of parts) {
    if (response.destroyed || sent >= prefix.length) break
    response.write(part.subarray(0, prefix.length - sent))
    sent += part.length
    await new Promise((resolve) => setImmediate(resolve))
  }
  if (answer.diesAfter === undefined) response.end()
  else response.destroy()
}

const INVALID = { type: 'invalid_request_error', param: null, code: null } as const

function models(response: ServerResponse): void {
  const data = ['small-1', 'large-1'].map((id) => ({
    id,
    object: 'model',
    created: 1_790_000_000,
    owned_by: 'testkit',
  }))
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }))
}

function refuse(response: ServerResponse, { status, ...error }: ApiError, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }))
}
