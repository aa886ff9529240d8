import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { parseFlags } from '@plat/config'
import { onShutdown } from '@plat/process'
import { type ModelRequest, readRequest } from './request.ts'
import { reply } from './script.ts'

export interface Model {
  /** Base URL of OpenAI clients: `http://127.0.0.1:<port>/v1`. */
  readonly url: string
  close(): Promise<void>
}

/** Largest request, in bytes. */
const MAX_BODY_BYTES = 1024 * 1024

/**
 * Serves one scripted model over OpenAI's chat completions on 127.0.0.1, so that the quickstart needs no account; port 0 takes a free
 * one.
 */
export async function startModel({ port }: { port: number }): Promise<Model> {
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const bound = address !== null && typeof address === 'object' ? address.port : port
  return {
    url: `http://127.0.0.1:${bound}/v1`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET' && request.url === '/v1/models') {
    const data = [{ id: 'scripted-1', object: 'model', created: 0, owned_by: 'quickstart' }]
    return json(response, 200, { object: 'list', data })
  }
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return refuse(response, 404, 'unknown URL')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) return refuse(response, 413, 'the request is too large')
    chunks.push(chunk)
  }
  const chat = readRequest(Buffer.concat(chunks).toString('utf8'))
  if (typeof chat === 'string') return refuse(response, 400, chat)
  const words = reply(chat.text).slice(0, chat.maxTokens)
  return chat.stream ? stream(response, chat, words) : whole(response, chat, words)
}

/** Members of both response formats. A word counts as a token. */
function parts({ model, text }: ModelRequest, words: readonly string[]) {
  const prompt = text.split(/\s+/).length
  const usage = { prompt_tokens: prompt, completion_tokens: words.length, total_tokens: prompt + words.length }
  return { base: { id: 'chatcmpl-scripted', created: 0, model }, usage }
}

function whole(response: ServerResponse, request: ModelRequest, words: readonly string[]): void {
  const { base, usage } = parts(request, words)
  const message = { role: 'assistant', content: words.join('') }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  json(response, 200, { ...base, object: 'chat.completion', choices, usage })
}

function stream(response: ServerResponse, request: ModelRequest, words: readonly string[]): void {
  const { base, usage } = parts(request, words)
  const send = (data: string) => response.write(`data: ${data}\n\n`)
  const chunk = (more: object) => send(JSON.stringify({ ...base, object: 'chat.completion.chunk', ...more }))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const content of words) chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  if (request.usage) chunk({ choices: [], usage })
  send('[DONE]')
  response.end()
}

function refuse(response: ServerResponse, status: number, message: string): void {
  json(response, status, { error: { message, type: 'invalid_request_error', param: null, code: null } })
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const FLAGS = {
  port: { type: 'int', default: 8092, min: 0, max: 65_535, help: 'Port on 127.0.0.1; 0 takes a free one.' },
} as const

/** `server.mjs -port 8092` */
export async function main(argv: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, argv, 'server.mjs')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const model = await startModel(flags.values)
  console.log(`a scripted model on ${model.url}`)
  return await new Promise((resolve) => {
    onShutdown(async () => {
      await model.close()
      resolve(0)
    })
  })
}
