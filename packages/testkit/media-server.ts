import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'

/** A file that the server received. */
export interface ReceivedFile {
  readonly part: string
  readonly filename: string
  readonly type: string
  readonly bytes: Buffer
}

/** A request that the server received: its fields, of JSON or of a form, and its files. */
export interface MediaCall {
  readonly path: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly files: readonly ReceivedFile[]
}

/** A server of OpenAI's API for images and sound, as strict about required members and files. */
export interface MediaServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string
  readonly calls: readonly MediaCall[]
  /** Sets the text of transcripts, and of the prompts of images. */
  says(text: string): void
  /** Speech is cut off in its middle from now on. */
  dies(): void
  close(): Promise<void>
}

/** Starts a server on a free port. */
export async function startMediaServer(): Promise<MediaServer> {
  const calls: MediaCall[] = []
  let text = 'hello'
  let isDying = false
  const server = createServer(async (request, response) => {
    const call = await received(request)
    calls.push(call)
    const fault = faultOf(call)
    if (fault !== null) return void json(response, 400, { error: { message: fault, type: 'invalid_request_error' } })
    if (call.path === '/v1/audio/speech') return speak(response, isDying)
    if (call.path.startsWith('/v1/audio/')) return transcribe(response, call, text)
    json(response, 200, imagesOf(call, text))
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    says(next) {
      text = next
    },
    dies() {
      isDying = true
    },
    close: () => closed(server),
  }
}

async function received(request: IncomingMessage): Promise<MediaCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const type = String(request.headers['content-type'])
  const path = request.url ?? ''
  if (type === 'application/json') return { path, fields: JSON.parse(body.toString()), files: [] }
  // Node's own parser, which is not the gateway's.
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const fields: { [name: string]: unknown } = {}
  const files: ReceivedFile[] = []
  for (const [part, value] of form) {
    if (typeof value === 'string') fields[part] = value
    else {
      const bytes = Buffer.from(await value.arrayBuffer())
      files.push({ part, filename: value.name, type: value.type, bytes })
    }
  }
  return { path, fields, files }
}

/** Members that each endpoint requires. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  '/v1/images/generations': ['prompt'],
  '/v1/images/edits': ['prompt'],
  '/v1/audio/speech': ['model', 'input', 'voice'],
  '/v1/audio/transcriptions': ['model'],
  '/v1/audio/translations': ['model'],
}

function faultOf({ path, fields, files }: MediaCall): string | null {
  const required = REQUIRED[path]
  if (required === undefined) return `Invalid URL (${path})`
  const missing = required.find((name) => fields[name] === undefined)
  if (missing !== undefined) return `Missing required parameter: '${missing}'`
  const needsFile = path === '/v1/images/edits' || path.startsWith('/v1/audio/trans')
  return needsFile && files.length === 0 ? 'Missing file' : null
}

function imagesOf({ fields: { n, model } }: MediaCall, text: string): object {
  const data = Array.from({ length: Number(n ?? 1) }, () => ({ b64_json: 'A'.repeat(40_000), revised_prompt: text }))
  const details = { text_tokens: 100, image_tokens: 400 }
  const usage = { input_tokens: 500, output_tokens: 1000, total_tokens: 1500, input_tokens_details: details }
  return { created: 1_790_000_000, data, ...(model === 't' && { usage }) }
}

const SOUND_BYTES = 300_000

function speak(response: ServerResponse, isDying: boolean): void {
  response.writeHead(200, { 'content-type': 'audio/mpeg', 'content-length': SOUND_BYTES })
  response.write(Buffer.alloc(SOUND_BYTES / 2))
  if (isDying) setImmediate(() => response.destroy())
  else response.end(Buffer.alloc(SOUND_BYTES / 2))
}

function transcribe(response: ServerResponse, { fields, files }: MediaCall, text: string): void {
  if (fields.response_format === 'text') {
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
    return
  }
  // Of the sound of the tests, which has 16,000 bytes a second.
  const seconds = Math.floor((files[0]?.bytes.length ?? 0) / 16_000)
  json(response, 200, { text, usage: { type: 'duration', seconds } })
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
