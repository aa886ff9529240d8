import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { type ContextResult, type SavedFile, SlotContexts } from './slot-contexts.ts'
import { Slots } from './slots.ts'

const MAX_BODY_BYTES = 32 * 1024 * 1024
const STATUS: Readonly<Record<ContextResult, number>> = {
  created: 201,
  exists: 200,
  done: 204,
  missing: 404,
  busy: 429,
}
const CONTEXT = /^(PUT|DELETE|POST) \/v1\/contexts\/([0-9a-f]{32})(?:\/(save|load))?$/

export interface AdapterSetup {
  /** Origin of llama.cpp's server. */
  readonly upstream: string
  /** Its `--slot-save-path`, on this machine. */
  readonly slotDir: string
  /** Bearer token that requests must have, and that llama.cpp's server requires (`--api-key`); null: none. */
  readonly apiKey: string | null
}

/**
 * Starts no listener: returns a server that speaks the protocol of context engines (docs/context-engines.md) and stores contexts in the slots of
 * llama.cpp's server. Rejects if that does not respond.
 */
export async function createAdapter({ upstream, slotDir, apiKey }: AdapterSetup): Promise<Server> {
  const slots = new Slots(upstream, apiKey)
  const contexts = await SlotContexts.open(slots, slotDir)
  return createServer((request, response) => {
    const isAllowed = apiKey === null || request.headers.authorization === `Bearer ${apiKey}`
    const done = isAllowed ? answer({ slots, contexts, request, response }) : Promise.resolve(send(response, 401))
    done.catch((error: unknown) => {
      if (error instanceof BodyError) return send(response, 400)
      if (!request.destroyed) console.error(String(error))
      return response.headersSent ? void response.destroy() : send(response, 502)
    })
  })
}

interface Exchange {
  readonly slots: Slots
  readonly contexts: SlotContexts
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

async function answer(exchange: Exchange): Promise<void> {
  const { slots, contexts, request, response } = exchange
  const route = `${request.method} ${request.url}`
  if (route === 'GET /v1/models') return await relay(await slots.models(), response)
  if (route === 'POST /v1/chat/completions' || route === 'POST /v1/completions') return await complete(exchange)
  const [, method, id, action] = CONTEXT.exec(route) ?? []
  const body = await bodyOf(request)
  if (method === undefined || id === undefined) return send(response, 404)
  if (method === 'PUT' && action === undefined)
    return respond(response, await contexts.create(id, typeof body.from === 'string' ? body.from : null))
  if (method === 'DELETE' && action === undefined) return respond(response, await contexts.drop(id))
  if (method !== 'POST' || action === undefined || typeof body.path !== 'string') return send(response, 404)
  respond(response, action === 'save' ? await contexts.save(id, body.path) : await contexts.load(id, body.path))
}

/** A request without a context would be given any slot, so that it could see what another session has read: it is refused. */
async function complete({ slots, contexts, request, response }: Exchange): Promise<void> {
  const id = request.headers['x-context-id']
  const body = await bodyOf(request)
  if (typeof id !== 'string') return send(response, 400, { error: { message: 'x-context-id is required' } })
  const slot = await contexts.acquire(id)
  if (slot === 'missing') return send(response, 409, {}, { 'x-context-status': 'stale' })
  if (slot === 'busy') return send(response, 429, {}, { 'x-context-status': 'busy' })
  try {
    const stop = new AbortController()
    response.once('close', () => stop.abort())
    const text = JSON.stringify({ ...body, id_slot: slot, cache_prompt: true })
    await relay(await slots.send(request.url ?? '', text, stop.signal), response)
  } finally {
    await contexts.release(id)
  }
}

async function relay(from: Response, response: ServerResponse): Promise<void> {
  response.writeHead(from.status, { 'content-type': from.headers.get('content-type') ?? 'application/json' })
  if (from.body === null) return void response.end()
  await pipeline(Readable.fromWeb(from.body), response)
}

class BodyError extends Error {}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new BodyError()
    chunks.push(chunk)
  }
  try {
    return Object(JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}'))
  } catch {
    throw new BodyError()
  }
}

function respond(response: ServerResponse, result: ContextResult | SavedFile): void {
  if (typeof result === 'string') send(response, STATUS[result])
  else send(response, 200, result)
}

function send(
  response: ServerResponse,
  status: number,
  body: object = {},
  headers: Readonly<Record<string, string>> = {},
): void {
  if (status === 204) return void response.writeHead(204).end()
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** `node context-engine.ts -upstream http://127.0.0.1:8080 -slots /var/lib/llama/slots`; the key is in `LLAMA_API_KEY`. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      upstream: { type: 'string', default: 'http://127.0.0.1:8080' },
      slots: { type: 'string', default: '' },
      port: { type: 'string', default: '9400' },
    },
  })
  if (values.slots === '') throw new Error('--slots is required: the --slot-save-path of llama-server')
  const apiKey = process.env.LLAMA_API_KEY || null
  const server = await createAdapter({ upstream: values.upstream, slotDir: values.slots, apiKey })
  server.listen(Number(values.port), '127.0.0.1', () => {
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : values.port
    console.log(`the context engine is at http://127.0.0.1:${port}/v1`)
  })
}

if (import.meta.main) await main()
