import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'

/** A request that the server received. */
export interface BatchesCall {
  readonly method: string
  readonly path: string
  readonly body: string
}

/** A model server that executes batches for all who have the key of its account, as OpenAI and Anthropic do. */
export interface BatchesServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  readonly calls: readonly BatchesCall[]
  /** Texts of the files that it stores, by id. */
  readonly files: ReadonlyMap<string, string>
  /** Executes the requests of a batch; each is answered with this text. */
  finish(id: string, text?: string): void
  /** The next object that is returned has these members instead. */
  forge(members: object): void
  close(): Promise<void>
}

interface Batch {
  readonly id: string
  readonly isAnthropic: boolean
  readonly requests: readonly { readonly custom_id: string; readonly model: string }[]
  readonly input: string
  status: 'running' | 'ended' | 'cancelled'
  output: string | null
}

/** Input and output tokens of each executed request. */
export const BATCH_TOKENS = { input: 10, output: 20 } as const

/** Starts a server on a free port, which speaks Anthropic's API below `/v1/messages`. */
export async function startBatchesServer(): Promise<BatchesServer> {
  const calls: BatchesCall[] = []
  const provider = new Provider()
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '' } = request
    const bytes = await bodyOf(request)
    calls.push({ method, path, body: bytes.toString() })
    if (path === '/v1/files') provider.upload(response, await fileIn(request, bytes))
    else if (path.startsWith('/v1/files/')) provider.file(response, path)
    else if (method === 'POST' && path.endsWith('/batches')) provider.create(response, path, bytes)
    else provider.batch(response, method, path)
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  return {
    ...{ url, calls, files: provider.files, close: () => closed(server) },
    finish: (id, text = 'done') => provider.finish(id, text),
    forge: (members) => provider.forge(members),
  }
}

class Provider {
  readonly files = new Map<string, string>()
  readonly #batches = new Map<string, Batch>()
  #forged: object = {}

  forge(members: object): void {
    this.#forged = members
  }

  upload(response: ServerResponse, text: string): void {
    const id = this.#store(text)
    this.#send(response, { id, object: 'file', purpose: 'batch', filename: 'f', bytes: 1, created_at: 1 })
  }

  file(response: ServerResponse, path: string): void {
    const [, id = '', content] = /^\/v1\/files\/([^/]+)(\/content)?$/.exec(path) ?? []
    const text = this.files.get(id)
    if (text === undefined) json(response, 404, errorOf('No such file'))
    else if (content === undefined) this.#send(response, { id, object: 'file', purpose: 'batch_output' })
    else response.writeHead(200).end(text)
  }

  create(response: ServerResponse, path: string, bytes: Buffer): void {
    const isAnthropic = path.includes('/messages/')
    const { input_file_id: input = '', requests: list } = JSON.parse(bytes.toString())
    const lines: readonly Line[] = isAnthropic ? list : linesOf(this.files.get(input) ?? '')
    const id = `${isAnthropic ? 'msgbatch' : 'batch'}_${this.#batches.size + 1}`
    const requests = lines.map((line) => requestOf(line))
    const batch: Batch = { id, isAnthropic, requests, input, status: 'running', output: null }
    this.#batches.set(id, batch)
    this.#send(response, described(batch))
  }

  batch(response: ServerResponse, method: string, path: string): void {
    const [, id = '', verb] = /^\/v1\/(?:messages\/)?batches\/([^/]+)(?:\/(cancel|results))?$/.exec(path) ?? []
    const batch = this.#batches.get(id)
    if (batch === undefined) json(response, 404, errorOf(`No batch ${id}`))
    else if (verb === 'results') response.writeHead(200, { 'content-type': 'application/x-jsonl' }).end(batch.output)
    else {
      if (verb === 'cancel') batch.status = 'cancelled'
      if (method === 'DELETE') this.#batches.delete(id)
      this.#send(response, method === 'DELETE' ? { id, type: 'message_batch_deleted' } : described(batch))
    }
  }

  finish(id: string, text: string): void {
    const batch = this.#batches.get(id)
    if (batch === undefined) throw new Error(`no batch ${id}`)
    const lines = batch.requests.map((one) => JSON.stringify(resultOf(batch, one, text)))
    const results = `${lines.join('\n')}\n`
    batch.output = batch.isAnthropic ? results : this.#store(results)
    batch.status = 'ended'
  }

  #store(text: string): string {
    const id = `file-${this.files.size + 1}`
    this.files.set(id, text)
    return id
  }

  #send(response: ServerResponse, value: object): void {
    json(response, 200, { ...value, ...this.#forged })
    this.#forged = {}
  }
}

interface Line {
  readonly custom_id?: string
  readonly body?: { readonly model?: string }
  readonly params?: { readonly model?: string }
}

function requestOf({ custom_id = '', body, params }: Line): Batch['requests'][number] {
  return { custom_id, model: (body ?? params)?.model ?? '' }
}

function resultOf({ isAnthropic }: Batch, { custom_id, model }: Batch['requests'][number], text: string): object {
  const { input, output } = BATCH_TOKENS
  if (isAnthropic) {
    const usage = { input_tokens: input, output_tokens: output }
    const content = [{ type: 'text', text }]
    const message = { id: 'msg', type: 'message', role: 'assistant', model, content, stop_reason: 'end_turn', usage }
    return { custom_id, result: { type: 'succeeded', message } }
  }
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }]
  const body = { id: 'c', object: 'chat.completion', created: 1, model, choices, usage }
  return { id: 'r', custom_id, response: { status_code: 200, request_id: 'q', body }, error: null }
}

function described({ id, isAnthropic, requests, input, status, output }: Batch): object {
  const succeeded = status === 'ended' ? requests.length : 0
  if (isAnthropic) {
    const counts = { processing: requests.length - succeeded, succeeded, errored: 0, canceled: 0, expired: 0 }
    const processing_status = status === 'running' ? 'in_progress' : 'ended'
    const results_url = output === null ? null : `https://api.anthropic.example/v1/messages/batches/${id}/results`
    return {
      id,
      type: 'message_batch',
      processing_status,
      request_counts: counts,
      results_url,
      created_at: '2026-11-28T00:00:00Z',
    }
  }
  const request_counts = { total: requests.length, completed: succeeded, failed: 0 }
  const states = { running: 'in_progress', ended: 'completed', cancelled: 'cancelled' } as const
  return {
    ...{ id, object: 'batch', endpoint: '/v1/chat/completions', input_file_id: input, completion_window: '24h' },
    ...{ status: states[status], created_at: 1, request_counts, ...(output !== null && { output_file_id: output }) },
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function fileIn({ headers }: IncomingMessage, body: Buffer): Promise<string> {
  const form = await new Response(body, { headers: { 'content-type': String(headers['content-type']) } }).formData()
  const file = form.get('file')
  return file instanceof File ? file.text() : ''
}

function linesOf(text: string): readonly object[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

function errorOf(message: string): object {
  return { error: { type: 'invalid_request_error', message } }
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
