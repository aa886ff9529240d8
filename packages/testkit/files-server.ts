import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'

/** A request that the server received. */
export interface FilesCall {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** Of a JSON body or a form without its file; null: none. */
  readonly fields: Readonly<Record<string, unknown>> | null
}

/** A model server that stores files for all who have the key of its account, as OpenAI and Anthropic do. */
export interface FilesServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  readonly calls: readonly FilesCall[]
  /** Names of the files that it stores, by id. */
  readonly stored: ReadonlyMap<string, string>
  close(): Promise<void>
}

interface StoredFile {
  readonly filename: string
  readonly purpose: string | undefined
  readonly bytes: Buffer
}

/** Starts a server on a free port, which speaks Anthropic's API where a request has its version and OpenAI's elsewhere. */
export async function startFilesServer(): Promise<FilesServer> {
  const calls: FilesCall[] = []
  const files = new Map<string, StoredFile>()
  const stored = new Map<string, string>()
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request
    const { fields, file } = await received(request)
    calls.push({ method, path, headers, fields })
    const isAnthropic = headers['anthropic-version'] !== undefined
    if (isAnthropic && path.startsWith('/v1/files') && headers['anthropic-beta'] !== 'files-api-2025-04-14')
      return void json(response, 400, errorOf('files need a beta header', isAnthropic))
    if (path === '/v1/files' && method === 'POST') {
      if (file === null) return void json(response, 400, errorOf('Missing file', isAnthropic))
      const id = `${isAnthropic ? 'file_' : 'file-'}${files.size + 1}`
      const purpose = typeof fields?.purpose === 'string' ? fields.purpose : undefined
      const one = { filename: file.name, bytes: Buffer.from(await file.arrayBuffer()), purpose }
      files.set(id, one)
      stored.set(id, one.filename)
      return void json(response, 200, described(id, one, isAnthropic))
    }
    const [, id = '', content] = /^\/v1\/files\/([^/?]+)(\/content)?$/.exec(path) ?? []
    const one = files.get(id)
    if (id === '') return void json(response, 200, isAnthropic ? MESSAGE : COMPLETION)
    if (one === undefined) return void json(response, 404, errorOf(`No such File object: ${id}`, isAnthropic))
    if (content !== undefined) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.end(one.bytes)
    }
    if (method !== 'DELETE') return void json(response, 200, described(id, one, isAnthropic))
    files.delete(id)
    stored.delete(id)
    json(response, 200, isAnthropic ? { id, type: 'file_deleted' } : { id, object: 'file', deleted: true })
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  return { url, calls, stored, close: () => closed(server) }
}

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const COMPLETION = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm', usage: USAGE },
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'read', refusal: null } }],
}
const MESSAGE = {
  ...{ id: 'msg', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null },
  ...{ content: [{ type: 'text', text: 'read' }], usage: { input_tokens: 1, output_tokens: 1 } },
}

async function received(request: IncomingMessage) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const type = String(request.headers['content-type'])
  if (body.length === 0) return { fields: null, file: null }
  if (type.startsWith('application/json')) return { fields: JSON.parse(body.toString()), file: null }
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const fields: { [name: string]: string } = {}
  let file: File | null = null
  for (const [name, value] of form) {
    if (typeof value === 'string') fields[name] = value
    else file = value
  }
  return { fields, file }
}

function described(id: string, { filename, purpose, bytes }: StoredFile, isAnthropic: boolean): object {
  return isAnthropic
    ? { id, type: 'file', filename, mime_type: 'text/plain', size_bytes: bytes.length, downloadable: true }
    : { id, object: 'file', bytes: bytes.length, created_at: 1, filename, purpose, status: 'processed' }
}

function errorOf(message: string, isAnthropic: boolean): object {
  const error = { type: 'invalid_request_error', message }
  return isAnthropic ? { type: 'error', error } : { error }
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
