import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'
import { OpenLedger } from './open-ledger.ts'

export interface ContextEngineSetup {
  /** Bearer token that requests must have. */
  readonly apiKey?: string
  /** File of its ledger; absent: it has none. */
  readonly ledgerPath?: string
}

/** The reference implementation of the protocol of context engines (docs/context-engines.md). Its model repeats what its context contains. */
export interface ContextEngine {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  /** Texts of each context. */
  readonly contexts: ReadonlyMap<string, readonly string[]>
  /** Requests in order, as `<method> <path>`. */
  readonly requests: readonly string[]
  /** Loses all contexts, as an engine that was restarted. */
  lose(): void
  /** Chat completions wait for it, and their contexts are in use meanwhile; null for none. */
  hold: Promise<void> | null
  /** The next requests fail in this way; null for none. Returning true ends the request. */
  fault: ((request: string, response: ServerResponse) => boolean | Promise<boolean>) | null
  close(): Promise<void>
}

export async function startContextEngine({ apiKey, ledgerPath }: ContextEngineSetup = {}): Promise<ContextEngine> {
  const contexts = new Map<string, string[]>()
  const requests: string[] = []
  const inUse = new Set<string>()
  const ledger = ledgerPath === undefined ? null : new OpenLedger({ path: ledgerPath })
  const server = createServer(async (request, response) => {
    const name = `${request.method} ${request.url}`
    requests.push(name)
    if (engine.fault !== null && (await engine.fault(name, response))) return
    if (apiKey !== undefined && request.headers.authorization !== `Bearer ${apiKey}`) return send(response, 401, {})
    const body = await bodyOf(request)
    const isChat = name === 'POST /v1/chat/completions'
    const context = String(request.headers['x-context-id'])
    const isBusy = inUse.has(isChat ? context : String(body.from))
    if (isChat && !isBusy && contexts.has(context)) {
      inUse.add(context)
      await engine.hold
      inUse.delete(context)
    }
    const replyOf = isChat ? () => chatReply(contexts, request, body) : () => contextReply(contexts, name, body)
    const reply = isBusy ? BUSY : replyOf()
    ledger?.append(1, { event: name.split('/', 3).join('/'), status: reply.status })
    send(response, reply.status, reply.body, reply.headers)
  })
  const port = await listening(server)
  const engine: ContextEngine = {
    url: `http://127.0.0.1:${port}/v1`,
    contexts,
    requests,
    lose: () => contexts.clear(),
    hold: null,
    fault: null,
    close: () => closed(server),
  }
  return engine
}

interface Reply {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

const BUSY: Reply = { status: 429, body: {}, headers: { 'x-context-status': 'busy' } }

function contextReply(contexts: Map<string, string[]>, name: string, body: Record<string, unknown>): Reply {
  const [, method = '', id = '', action = ''] =
    /^(\w+) \/v1\/contexts\/([0-9a-f]{32})(?:\/(save|load))?$/.exec(name) ?? []
  const known = contexts.get(id)
  if (method === 'PUT') {
    if (known !== undefined) return { status: 200, body: {} }
    const parent = typeof body.from === 'string' ? contexts.get(body.from) : []
    if (parent === undefined) return { status: 404, body: {} }
    contexts.set(id, [...parent])
    return { status: 201, body: {} }
  }
  if (method === 'DELETE') return { status: contexts.delete(id) ? 204 : 404, body: {} }
  if (method !== 'POST' || typeof body.path !== 'string') return { status: 404, body: {} }
  return moved(contexts, { id, action, path: body.path })
}

function moved(
  contexts: Map<string, string[]>,
  { id, action, path }: { id: string; action: string; path: string },
): Reply {
  const known = contexts.get(id)
  if (action === 'save' && known === undefined) return { status: 404, body: {} }
  if (action === 'save') writeFileSync(path, JSON.stringify(known))
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return { status: 404, body: {} }
  }
  if (action === 'load') contexts.set(id, JSON.parse(text))
  return { status: 200, body: { bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') } }
}

/** Adds the last message to the context, and responds with all that it contains. */
function chatReply(contexts: Map<string, string[]>, request: IncomingMessage, body: Record<string, unknown>): Reply {
  const id = request.headers['x-context-id']
  const context = typeof id === 'string' ? contexts.get(id) : []
  if (context === undefined) return { status: 409, body: {}, headers: { 'x-context-status': 'stale' } }
  const messages = Array.isArray(body.messages) ? body.messages : []
  context.push(String(Object(messages.at(-1)).content))
  const message = { role: 'assistant', content: context.join('|'), refusal: null }
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }]
  return {
    status: 200,
    body: {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: String(body.model),
      choices,
      usage,
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? {} : Object(JSON.parse(text))
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (status === 204) return void response.writeHead(204).end()
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
