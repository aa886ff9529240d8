import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GatewayProcess, startGatewayProcess } from '../gateway.ts'
import { TEST_TRUST_DOMAIN, testIssuer } from '../identity.ts'
import { tempFolder } from '../local.ts'
import { denialIn } from '../mcp/denial.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../mcp-upstream.ts'
import { policiesFile, testPolicy } from '../policies.ts'
import type { TestPostgres } from './server.ts'

/** Of each gateway. */
export const ADMIN_TOKEN = 'a-token-of-the-test'

export interface GatewaysSetup {
  readonly postgres: TestPostgres
  /** Another way to the server than its own `dsn`. */
  readonly dsn?: string
  /** Rules of the one policy; everything is allowed where they are left out. */
  readonly rules?: readonly object[]
  /** `pricing.json`. */
  readonly prices?: object
  /** Keys of gateway.json laid over those of the fixture, `stateBackend` included. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly stateBackend?: Readonly<Record<string, unknown>>
  /** Called with the arguments of each tool call that reaches the server, before it answers. */
  onCall?(args: Readonly<Record<string, unknown>>): unknown
}

/** A JSON-RPC response with the status and headers of its HTTP response. A refusal is an error, whichever form it has. */
export interface McpReply {
  readonly status: number
  readonly headers: Headers
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly data: Readonly<Record<string, unknown>> }
}

/** Gateways that share a Postgres server, an issuer and one MCP server `notes`. They are closed before the Postgres server ends. */
export class TestGateways {
  /** Files of all gateways. */
  readonly dir = tempFolder()
  readonly issuer = testIssuer()
  readonly #setup: GatewaysSetup
  readonly #open = new Set<GatewayProcess>()
  #preparing: Promise<ScriptedUpstream> | null = null
  #upstream: ScriptedUpstream | null = null

  constructor(setup: GatewaysSetup) {
    this.#setup = setup
    const { postgres, dsn = postgres.dsn, rules, prices } = setup
    writeFileSync(this.#file('policies.json'), policiesFile([testPolicy(rules && { rules })]))
    writeFileSync(this.#file('dsn'), `${dsn}\n`)
    if (prices !== undefined) writeFileSync(this.#file('pricing.json'), JSON.stringify(prices))
    postgres.beforeClose(() => this.#close())
  }

  /** Upstream of the gateways; it runs from the first gateway on. */
  get upstream(): ScriptedUpstream {
    if (this.#upstream === null) throw new Error('no gateway was started')
    return this.#upstream
  }

  /** Starts one more gateway; `config` is laid over that of the setup. */
  async start(config: Readonly<Record<string, unknown>> = {}): Promise<GatewayProcess> {
    const { postgres, prices, stateBackend, config: shared } = this.#setup
    await postgres.started
    const { url } = await this.#prepare()
    const gateway = await startGatewayProcess({
      servers: { notes: url },
      issuer: this.issuer,
      env: { PLAT_ADMIN_TOKEN: ADMIN_TOKEN },
      config: {
        policyFile: this.#file('policies.json'),
        ...(prices !== undefined && { pricingFile: this.#file('pricing.json') }),
        adminAuth: { mode: 'token', devTokenApprovers: true },
        stateBackend: { type: 'postgres', dsnFile: this.#file('dsn'), ...stateBackend },
        ...shared,
        ...config,
      },
    })
    this.#open.add(gateway)
    return gateway
  }

  /** Starts gateways side by side. The first makes the schema; the others find it. */
  async startMany(count: number): Promise<GatewayProcess[]> {
    const first = await this.start()
    return [first, ...(await Promise.all(Array.from({ length: count - 1 }, () => this.start())))]
  }

  /** Ends one gateway and removes its files. */
  async close(gateway: GatewayProcess): Promise<void> {
    this.#open.delete(gateway)
    await gateway.close()
  }

  /** Sends an MCP message as `default/assistant` in this session. */
  async send(gateway: GatewayProcess, session: string, message: object, headers: object = {}): Promise<McpReply> {
    const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/${session}`
    const response = await fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-11-25',
        authorization: `Bearer ${this.issuer.token({ sub, plat_session: session, scope: 'tools:notes' })}`,
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    })
    const text = await response.text()
    const body = text === '' ? {} : JSON.parse(text)
    const denial = denialIn(body)
    return { status: response.status, headers: response.headers, ...(denial === null ? body : { error: denial }) }
  }

  call(gateway: GatewayProcess, session: string, tool: string, args: object = {}): Promise<McpReply> {
    return this.send(gateway, session, { method: 'tools/call', params: { name: tool, arguments: args } })
  }

  /** Code of the refusal of a call; null: it passed. */
  async refusal(gateway: GatewayProcess, session: string, tool: string, args?: object): Promise<unknown> {
    return (await this.call(gateway, session, tool, args)).error?.data.error ?? null
  }

  /** A request to the admin API. The body is parsed; without one it is an empty object. */
  async admin({ url }: GatewayProcess, method: string, path: string, body?: object) {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${url}/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
  }

  async #prepare(): Promise<ScriptedUpstream> {
    const { onCall } = this.#setup
    this.#preparing ??= startScriptedUpstream()
    const upstream = await this.#preparing
    if (this.#upstream !== null) return upstream
    this.#upstream = upstream
    upstream.answers(async ({ body }, response) => {
      const { id, method, params } = JSON.parse(body)
      if (method === 'tools/call') await onCall?.(params.arguments ?? {})
      const isFirst = method === 'initialize'
      const headers = { 'content-type': 'application/json', ...(isFirst && { 'mcp-session-id': 'upstreams-own' }) }
      const result = isFirst ? INITIALIZED : { content: [{ type: 'text', text: 'done' }] }
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
    return upstream
  }

  #file(name: string): string {
    return join(this.dir, name)
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#open].map((gateway) => gateway.close()))
    await this.#upstream?.close()
  }
}

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'n', version: '1' },
}
