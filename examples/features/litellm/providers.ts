/** Providers of models on loopback, each with its API and authentication. Each responds with its name. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from '@plat/testkit/local'
import { startAnthropicServer } from '@plat/testkit/model/anthropic'
import { completion, events } from '@plat/testkit/model/reply'
import { startModelServer } from '@plat/testkit/model-server'

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS_TYPE = { 'content-type': 'text/event-stream' }

/** The text of a provider, in the pieces of a stream. */
function textOf(provider: string): readonly string[] {
  return ['Hello ', 'from ', provider]
}

/** Starts all providers, and returns the variables of config.yaml. `stack` ends them. */
export async function startProviders(stack: AsyncDisposableStack): Promise<Readonly<Record<string, string>>> {
  const openai = stack.adopt(await startModelServer({ apiKey: 'sk-openai' }), (server) => server.close())
  openai.answers({ text: textOf('OpenAI') })
  const anthropic = stack.adopt(await startAnthropicServer('sk-anthropic'), (server) => server.close())
  anthropic.answers({ text: textOf('Anthropic') })
  return {
    OPENAI_API_BASE: openai.url,
    OPENAI_API_KEY: 'sk-openai',
    ANTHROPIC_API_BASE: new URL(anthropic.url).origin,
    ANTHROPIC_API_KEY: 'sk-anthropic',
    GEMINI_API_BASE: `${await serve(stack, gemini)}/v1beta`,
    GEMINI_API_KEY: 'gemini-key',
    AZURE_API_BASE: await serve(stack, azure),
    AZURE_API_KEY: 'azure-key',
  }
}

type Handler = (request: IncomingMessage, body: { readonly stream?: boolean }, response: ServerResponse) => void

async function serve(stack: AsyncDisposableStack, handler: Handler): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    handler(request, JSON.parse(Buffer.concat(chunks).toString() || '{}'), response)
  })
  const port = await listening(server)
  stack.defer(() => closed(server))
  return `http://127.0.0.1:${port}`
}

/** Gemini's `generateContent` and `streamGenerateContent`. */
function gemini({ url, headers }: IncomingMessage, _body: object, response: ServerResponse): void {
  const path = '/v1beta/models/gemini-2.5-flash:'
  const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 3, totalTokenCount: 7 }
  const part = (text: string, finishReason?: string) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, ...(finishReason && { finishReason }) }],
    usageMetadata,
    modelVersion: 'gemini-2.5-flash',
    responseId: 'scripted',
  })
  const text = textOf('Gemini')
  if (headers['x-goog-api-key'] !== 'gemini-key') {
    refuse(response, 401)
  } else if (url === `${path}generateContent`) {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(part(text.join(''), 'STOP')))
  } else if (url === `${path}streamGenerateContent?alt=sse`) {
    response.writeHead(200, EVENTS_TYPE)
    for (const [at, piece] of text.entries())
      response.write(`data: ${JSON.stringify(part(piece, at === text.length - 1 ? 'STOP' : undefined))}\r\n\r\n`)
    response.end()
  } else refuse(response, 404)
}

/** A deployment of Azure OpenAI. */
function azure({ url, headers }: IncomingMessage, { stream }: { readonly stream?: boolean }, response: ServerResponse) {
  if (headers['api-key'] !== 'azure-key') return refuse(response, 401)
  if (url !== '/openai/deployments/gpt-4o-eu/chat/completions?api-version=2024-10-21') return refuse(response, 404)
  const prompt = { model: 'gpt-4o-eu', choices: 1, usageRequested: true }
  const reply = { text: textOf('Azure') }
  if (stream === true) response.writeHead(200, EVENTS_TYPE).end(events(reply, prompt).join(''))
  else response.writeHead(200, JSON_TYPE).end(completion(reply, prompt))
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, JSON_TYPE).end(JSON.stringify({ error: { message: `scripted ${status}` } }))
}
