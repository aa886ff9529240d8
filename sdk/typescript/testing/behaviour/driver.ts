import { waitingClock } from '../../clock.ts'
import {
  bootstrap,
  broker,
  type ConnectOptions,
  connect,
  DeniedError,
  deniedBy,
  IdentityRefusedError,
  type Session,
  TokenUnavailableError,
  untilApproved,
} from '../../index.ts'

/** One operation of a scenario, and what it gives. A driver in another language reads and writes the same as lines of JSON. */
export type Operation = Readonly<Record<string, unknown>>
export type Outcome = Readonly<Record<string, unknown>>

/** Carries out operations with one SDK. */
export interface Driver {
  perform(operation: Operation): Promise<Outcome>
  close(): Promise<void>
}

/** How a session is opened. */
export interface Opening {
  readonly gatewayURL: string
  readonly publicURL: string
  readonly identityURL: string
  readonly brokerToken: string
  readonly session: string
  readonly scopes: readonly string[]
  readonly dpop: boolean
  readonly skewSeconds: number
  readonly ttlSeconds: number | null
  readonly bootstrapURL: string | null
  readonly serviceAccountTokenFile: string
}

/** The SDK for TypeScript. */
export class TypeScriptDriver implements Driver {
  #session: Session | null = null

  async perform(operation: Operation): Promise<Outcome> {
    try {
      return await this.#performed(operation)
    } catch (error) {
      return outcomeOf(error)
    }
  }

  async close(): Promise<void> {
    this.#session?.close()
  }

  async #performed(operation: Operation): Promise<Outcome> {
    const { open, tool, untilApproved: held, model, exchange, renewals } = operation
    if (isOpening(open)) {
      this.#session?.close()
      this.#session = null
      this.#session = await connect(optionsOf(open))
      return { ok: true }
    }
    const session = this.#session
    if (session === null) throw new Error('no session')
    if (typeof tool === 'string') return callTool(session, tool, operation)
    if (typeof held === 'string') return untilApproved(() => resultOf(session, held, {})).then(() => ({ ok: true }))
    if (typeof model === 'string') return complete(session, model)
    if (typeof exchange === 'string')
      return { ok: true, scopes: (await session.exchange({ audience: exchange })).scopes }
    if (typeof renewals === 'number') return renew(session, renewals)
    return { session: session.claims?.session, user: session.claims?.user }
  }
}

function isOpening(value: unknown): value is Opening {
  return typeof value === 'object' && value !== null
}

function optionsOf(open: Opening): ConnectOptions {
  const { gatewayURL, publicURL, identityURL, dpop, brokerToken, session, scopes, ttlSeconds } = open
  const clock = { ...waitingClock, now: () => waitingClock.now() + open.skewSeconds * 1000 }
  if (open.bootstrapURL !== null) {
    const { bootstrapURL: url, serviceAccountTokenFile } = open
    return { source: bootstrap({ url, serviceAccountTokenFile }), identityURL, publicURL, dpop, clock, env: {} }
  }
  const of = { namespace: 'default', agent: 'assistant', session, user: 'ada', scopes, tier: 'tier-0' }
  const source = broker({ identityURL, brokerToken, ...of, ...(ttlSeconds !== null && { ttlSeconds }) })
  return { gatewayURL, publicURL, identityURL, source, dpop, clock, env: {} }
}

/** The response to one call of a tool: its status, and its message if it has one. */
async function resultOf(session: Session, tool: string, operation: Operation) {
  const { approvalWaitSeconds: seconds, server = 'fixture' } = operation
  const { url, fetch, requestInit } = session.mcp(
    String(server),
    typeof seconds === 'number' ? { approvalWaitSeconds: seconds } : {},
  )
  const common = {
    ...requestInit.headers,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  }
  const post = async (body: object, headers: Readonly<Record<string, string>> = {}) => {
    const init = {
      method: 'POST',
      headers: { ...common, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    }
    return fetch(url, init)
  }
  const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const begun = await post({ id: 1, method: 'initialize', params: client })
  await begun.text()
  const id = begun.headers.get('mcp-session-id')
  const headers = { 'mcp-protocol-version': '2025-06-18', ...(id !== null && { 'mcp-session-id': id }) }
  await (await post({ method: 'notifications/initialized' }, headers)).text()
  const response = await post({ id: 2, method: 'tools/call', params: { name: tool, arguments: {} } }, headers)
  const message = messageIn(await response.text())
  const denied = deniedBy(message.result ?? message.error)
  if (denied !== null) throw denied
  return { status: response.status, message }
}

async function callTool(session: Session, tool: string, operation: Operation): Promise<Outcome> {
  const { status, message } = await resultOf(session, tool, operation)
  return message.result === undefined ? { status } : { ok: true }
}

/** The last message of a response in JSON or as events; empty without one. */
function messageIn(body: string): Readonly<Record<string, unknown>> {
  const data = body.split('\n').findLast((line) => line.startsWith('data: {'))
  try {
    return Object(JSON.parse(data?.slice('data: '.length) ?? body))
  } catch {
    return {}
  }
}

async function complete(session: Session, route: string): Promise<Outcome> {
  const { baseURL, fetch } = session.openai(route)
  const body = JSON.stringify({ model: 'small-1', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${baseURL}/chat/completions`, { method: 'POST', headers, body })
  const denied = deniedBy({ status: response.status, headers: response.headers, ...Object(await response.json()) })
  if (denied !== null) throw denied
  return { ok: true }
}

async function renew(session: Session, count: number): Promise<Outcome> {
  const tokens = new Set<string>()
  while (tokens.size < count) {
    const response = await session.fetch(`${session.gatewayURL}/llm/small/v1/models`)
    await response.text()
    if (!response.ok) return { status: response.status }
    tokens.add(session.claims?.jti ?? '')
  }
  return { ok: true }
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof DeniedError) {
    const { code, name, status, rule, scopes } = error
    return { denied: code, kind: name, status, rule, scopes }
  }
  if (error instanceof IdentityRefusedError) return { error: error.name, code: error.code }
  if (error instanceof TokenUnavailableError) return { error: error.name, retryable: error.retryable }
  return { error: String(error) }
}
