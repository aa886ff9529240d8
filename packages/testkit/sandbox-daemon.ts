import { appendFileSync, chmodSync, existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { writeEntry } from '@plat/ledger'
import { closed, listening } from './local.ts'

const NO_RECORD = '0'.repeat(64)
const MAX_BODY_BYTES = 4 * 1024 * 1024
/** Bytes of lines in one response. */
const MAX_LINES_BYTES = 1024 * 1024

/** Result of code that ran in a sandbox. */
export interface CodeResult {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
}

export interface CodeRequest {
  readonly session: string
  readonly code: string
  readonly timeoutSeconds: number
  /** Aborts when the gateway closes the connection. */
  readonly signal: AbortSignal
}

export interface SandboxDaemonSetup {
  readonly ledgerPath: string
  /** Unix socket to listen on; absent: a free port of the loopback interface. */
  readonly socket?: string
  /** Port of the loopback interface; default: a free one. */
  readonly port?: number
  /** Bearer token that requests must have. */
  readonly token?: string
  /** `X-Plat-Exec-Key` that requests to run code must have. */
  readonly execKey?: string
  /** Runs code; absent: none is run. */
  readonly run?: (request: CodeRequest) => Promise<CodeResult>
}

/** Faults of a daemon: each is called before the response is sent, and may send another one. */
export type DaemonFault = (request: { readonly path: string }, response: ServerResponse) => boolean | Promise<boolean>

/** The reference implementation of the protocol of sandbox daemons (docs/sandbox-daemons.md). */
export interface SandboxDaemon {
  readonly url: string
  /** Mirrored decisions. */
  readonly decisions: readonly Readonly<Record<string, unknown>>[]
  /** Appends a record to the ledger. */
  record(members: Readonly<Record<string, unknown>>): { readonly seq: number; readonly hash: string }
  /** The next requests fail in this way; null for none. Returning true ends the request. */
  fault: DaemonFault | null
  close(): Promise<void>
}

/** Starts a daemon. Continues the ledger at `ledgerPath` if it exists. */
export async function startSandboxDaemon(setup: SandboxDaemonSetup): Promise<SandboxDaemon> {
  const decisions: Readonly<Record<string, unknown>>[] = []
  const ledger = new DaemonLedger(setup.ledgerPath)
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    if (daemon.fault !== null && (await daemon.fault({ path }, response))) return
    const { status, body } = await respond(request, response).catch((error: unknown) => failed(error))
    if (response.destroyed) return
    const isText = typeof body === 'string'
    response.writeHead(status, { 'content-type': isText ? 'application/x-ndjson' : 'application/json' })
    response.end(body === null ? '' : isText ? body : JSON.stringify(body))
  })
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<Reply> => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const route = `${request.method} ${url.pathname}`
    const code = /^POST \/sandboxes\/([^/]+)\/([^/]+)\/exec$/.exec(route)
    if (code !== null) return await runCode(setup, { session: `${code[1]}/${code[2]}`, request, response, ledger })
    if (setup.token !== undefined && request.headers.authorization !== `Bearer ${setup.token}`) return refused(401)
    if (route === 'POST /v1/decisions') {
      const body = await bodyOf(request)
      if (!Array.isArray(body.decisions)) return refused(400)
      for (const decision of body.decisions) decisions.push(decision)
      ledger.append({ event: 'decisions', count: body.decisions.length })
      return { status: 204, body: null }
    }
    if (route === 'POST /v1/ledger/anchors') {
      const { ledgerId, seq, hash } = await bodyOf(request)
      return { status: 200, body: ledger.append({ event: 'anchor', anchor: { ledgerId, seq, hash } }) }
    }
    if (route === 'GET /v1/ledger/lines') {
      const [from, limit] = ['from', 'limit'].map((name) => Number(url.searchParams.get(name) ?? Number.NaN))
      return { status: 200, body: ledger.lines(from ?? 0, limit ?? 1000) }
    }
    return refused(404)
  }
  const url = await listen(server, setup)
  const daemon: SandboxDaemon = {
    url,
    decisions,
    record: (members) => ledger.append(members),
    fault: null,
    close: () => closed(server),
  }
  return daemon
}

interface Reply {
  readonly status: number
  readonly body: object | string | null
}

async function listen(
  server: ReturnType<typeof createServer>,
  { socket, port = 0 }: SandboxDaemonSetup,
): Promise<string> {
  if (socket === undefined) return `http://127.0.0.1:${await listening(server, '127.0.0.1', port)}`
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(socket, resolve)
  await promise
  chmodSync(socket, 0o600)
  return socket
}

/** A hash-chained file in the open ledger format. Records are synchronous: this daemon is for a laptop and for tests. */
class DaemonLedger {
  readonly #path: string
  readonly #lines: string[]
  #prev = NO_RECORD

  constructor(path: string) {
    this.#path = path
    this.#lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
    const last = this.#lines.at(-1)
    if (last !== undefined) this.#prev = JSON.parse(last).hash
  }

  append(members: Readonly<Record<string, unknown>>): { readonly seq: number; readonly hash: string } {
    const seq = this.#lines.length
    const { text, hash } = writeEntry({ seq, prev: this.#prev }, { at: new Date().toISOString(), ...members })
    appendFileSync(this.#path, text)
    this.#lines.push(text.trimEnd())
    this.#prev = hash
    return { seq, hash }
  }

  lines(from: number, limit: number): string {
    let text = ''
    for (const line of this.#lines.slice(from, from + limit)) {
      if (text.length + line.length > MAX_LINES_BYTES && text !== '') break
      text += `${line}\n`
    }
    return text
  }
}

interface CodeCall {
  readonly session: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly ledger: DaemonLedger
}

async function runCode(
  { execKey, run }: SandboxDaemonSetup,
  { session, request, response, ledger }: CodeCall,
): Promise<Reply> {
  if (run === undefined) return refused(404)
  if (execKey !== undefined && request.headers['x-plat-exec-key'] !== execKey) return refused(401)
  const { code } = await bodyOf(request)
  if (typeof code !== 'string') return refused(400)
  const timeoutSeconds = Number(request.headers['x-plat-exec-timeout'] ?? 60)
  const stop = new AbortController()
  response.once('close', () => stop.abort())
  ledger.append({ event: 'exec', session, decision: request.headers['x-plat-decision-id'] })
  const result = await run({ session, code, timeoutSeconds, signal: stop.signal })
  ledger.append({ event: 'exited', session, exitCode: result.exitCode })
  return { status: 200, body: result }
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
    return Object(JSON.parse(Buffer.concat(chunks).toString('utf8')))
  } catch {
    throw new BodyError()
  }
}

function failed(error: unknown): Reply {
  return refused(error instanceof BodyError ? 400 : 500)
}

function refused(status: number): Reply {
  return { status, body: { error: status } }
}
