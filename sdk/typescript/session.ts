import { type Clock, readBody, readJson } from '@plat/core'
import type { SessionClaims } from '@plat/tokens'
import { GovernedFetch, type RefusalHandling } from './call/fetch.ts'
import { GatewayAddresses } from './call/request.ts'
import { denialIn } from './denied/error.ts'
import { PlatError } from './error.ts'
import { type DelegateOptions, type Exchanged, type ExchangeOptions, Exchanger } from './token/exchange.ts'
import { fixedToken } from './token/file.ts'
import type { TokenKeeper } from './token/keeper.ts'
import { Prover } from './token/prover.ts'

/** Largest result of code, in bytes. */
const MAX_RESULT_BYTES = 64 * 1024 * 1024

/** Parts of a session, assembled by {@link connect}. */
export interface SessionParts {
  /** Without a trailing slash. */
  readonly gatewayURL: string
  /** Public URL of the gateway in proofs and cards; null: `gatewayURL`. */
  readonly publicURL: string | null
  readonly identityURL: string | null
  /** Null: a forwarder adds the token. */
  readonly keeper: TokenKeeper | null
  /** Name of the session, if it is not known from a token. */
  readonly name: string | null
  /** The agent's model route, if it is not known from a token. */
  readonly route: string | null
  readonly fetch: typeof globalThis.fetch
  readonly clock: Clock
}

/** Options that the transports of both MCP SDKs take. */
export interface McpAddress {
  readonly url: URL
  readonly fetch: typeof globalThis.fetch
  readonly requestInit: { readonly headers: Record<string, string> }
}

/** Result of code in the session's sandbox. */
export interface ExecResult {
  /** Status of the sandbox, below 500. */
  readonly status: number
  readonly result: unknown
}

/**
 * A governed session of an agent: its identity and its calls. Created by {@link connect}.
 *
 * @example
 * const session = await connect()
 * const openai = new OpenAI(session.openai())
 */
export class Session {
  /** URL of every call, without a trailing slash. */
  readonly gatewayURL: string
  /**
   * `fetch` for calls to the gateway only, with the session's token, and a proof if the token is bound to a key. A call that the
   * gateway marks as safe to repeat is repeated. A refusal rejects with {@link DeniedError}, except for the statuses 400, 404 and 405,
   * which protocol clients handle; JSON-RPC errors are returned as responses, and {@link deniedBy} finds them in errors of clients.
   *
   * @example
   * const response = await session.fetch(`${session.gatewayURL}/mcp/notes`, { method: 'POST', body })
   */
  readonly fetch: typeof globalThis.fetch
  readonly #parts: SessionParts
  readonly #governed: GovernedFetch
  readonly #answers: typeof globalThis.fetch

  constructor(parts: SessionParts) {
    const { gatewayURL, publicURL, keeper, fetch, clock } = parts
    this.gatewayURL = gatewayURL
    this.#parts = parts
    const bases = publicURL === null ? [gatewayURL] : [gatewayURL, publicURL]
    this.#governed = new GovernedFetch({
      keeper,
      reach: new GatewayAddresses(bases, (message) => new PlatError(message)),
      fetch,
      clock,
      provenURL: (url) =>
        publicURL !== null && url.startsWith(gatewayURL) ? publicURL + url.slice(gatewayURL.length) : url,
    })
    this.fetch = this.#fetching({ refusals: 'errors' })
    this.#answers = this.#fetching({ refusals: 'answers' })
  }

  /** Variables from the bootstrap endpoint; empty without it. */
  get env(): Readonly<Record<string, string>> {
    return this.#parts.keeper?.env ?? {}
  }

  /**
   * Claims of the session's token: user, groups, inherited taints, scopes, expiry. Null under `plat run`, which holds the token.
   *
   * @example
   * if (session.claims?.groups.includes('staff')) offerInternalDocuments()
   */
  get claims(): SessionClaims | null {
    return this.#parts.keeper?.claims ?? null
  }

  /**
   * Returns a currently valid token, for uses that `session.fetch` does not cover. A bound token needs a proof with each use.
   * @throws TokenUnavailableError
   */
  async token(): Promise<string> {
    return (await this.#keeper('the token').current()).text
  }

  /**
   * An MCP server, for the transports of `@modelcontextprotocol/client` and of version 1, `@modelcontextprotocol/sdk`.
   *
   * @param options `approvalWaitSeconds`: a call with a pending approval is refused (`ApprovalPendingError`) after this time; default: the
   *   agent's `answerAfterSeconds`. `refusals`: `error` makes refused tool calls reject, instead of resolve to a result for models
   *   that {@link deniedBy} reads; default: the agent's `refusals`.
   * @example
   * const { url, ...options } = session.mcp('notes')
   * await client.connect(new StreamableHTTPClientTransport(url, options))
   */
  mcp(
    server: string,
    options: { readonly approvalWaitSeconds?: number; readonly refusals?: 'result' | 'error' } = {},
  ): McpAddress {
    const { approvalWaitSeconds: seconds, refusals } = options
    const headers = {
      ...(seconds !== undefined && { prefer: `wait=${Math.trunc(seconds)}` }),
      ...(refusals !== undefined && { 'x-plat-refusals': refusals }),
    }
    return { url: new URL(`${this.gatewayURL}/mcp/${pathOf(server)}`), fetch: this.fetch, requestInit: { headers } }
  }

  /**
   * Options of the OpenAI client for a model route; by default the agent's route. The client retries by itself.
   *
   * @example
   * const openai = new OpenAI(session.openai())
   */
  openai(route: string = this.#ownRoute()) {
    return {
      baseURL: `${this.gatewayURL}/llm/${encodeURIComponent(route)}/v1`,
      apiKey: IN_PLACE,
      fetch: this.#answers,
    }
  }

  /**
   * Options of the Anthropic client for a model route; by default the agent's route.
   *
   * @example
   * const anthropic = new Anthropic(session.anthropic('claude'))
   */
  anthropic(route: string = this.#ownRoute()) {
    return {
      baseURL: `${this.gatewayURL}/llm/${encodeURIComponent(route)}`,
      apiKey: null,
      authToken: IN_PLACE,
      fetch: this.#answers,
    }
  }

  /**
   * Another agent, for `@a2a-js/sdk`.
   *
   * @example
   * const { url, cardPath, fetchImpl } = session.a2a('default', 'researcher')
   * const factory = new ClientFactory({
   *   transports: [new JsonRpcTransportFactory({ fetchImpl })],
   *   cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
   * })
   * const client = await factory.createFromUrl(url, cardPath)
   */
  a2a(namespace: string, agent: string) {
    return {
      url: `${this.gatewayURL}/a2a/${encodeURIComponent(namespace)}/${encodeURIComponent(agent)}/`,
      cardPath: '.well-known/agent-card.json',
      fetchImpl: this.fetch,
    }
  }

  /**
   * Runs code in the session's sandbox (`exec.enabled` of the gateway, profile `codeInterpreter` of the agent).
   *
   * @throws DeniedError if the gateway refuses.
   * @example
   * const { status, result } = await session.exec({ code: 'print(6 * 7)', timeoutSeconds: 10 })
   */
  async exec(
    code: Readonly<Record<string, unknown>>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<ExecResult> {
    const name = this.claims?.session ?? this.#parts.name
    if (name === null) throw new PlatError('the session has no name: set PLAT_SESSION')
    const response = await this.fetch(`${this.gatewayURL}/v1/sessions/${encodeURIComponent(name)}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(code),
      signal: options.signal ?? null,
    })
    const denied = await denialIn(response)
    if (denied !== null) throw denied
    const bytes = await readBody(response.body, MAX_RESULT_BYTES)
    if (bytes === null) throw new PlatError(`the result is larger than ${MAX_RESULT_BYTES} bytes`)
    const result = readJson(bytes)
    if (result === undefined) throw new PlatError('the result is not JSON')
    return { status: response.status, result }
  }

  /**
   * Exchanges the session's token at the broker for a token with fewer scopes and another audience, or for a cloud credential.
   *
   * @throws IdentityRefusedError with the broker's word.
   * @example
   * const { token } = await session.exchange({ audience: 'reports-bucket', scopes: ['tools:reports'] })
   */
  async exchange(options: ExchangeOptions): Promise<Exchanged> {
    const keeper = this.#keeper('the token')
    const { text } = await keeper.current(options.signal ?? null)
    return this.#exchanger().exchange(text, options, keeper.prover)
  }

  /**
   * Returns a session that acts for the caller of this agent and for its user, for further calls on their behalf. It expires with
   * the delegated token and is not renewed.
   *
   * @throws IdentityRefusedError with the broker's word.
   * @example
   * const acting = await session.delegate({ transaction: request.headers['txn-token'] })
   */
  async delegate(options: DelegateOptions): Promise<Session> {
    const keeper = this.#keeper('the token')
    const { text } = await keeper.current(options.signal ?? null)
    const { token } = await this.#exchanger().delegate(text, options, keeper.prover)
    const acting = keeper.withSource(fixedToken(token))
    await acting.current(options.signal ?? null)
    return new Session({ ...this.#parts, keeper: acting })
  }

  /**
   * Binds the session to a key from now on (DPoP), so that a leaked token is useless. `connect({ dpop: true })` does it from the start.
   *
   * @throws IdentityRefusedError if the token is already bound to another key.
   * @example
   * await session.bind()
   */
  async bind(privateKey?: string): Promise<void> {
    await this.#keeper('binding').bindTo(new Prover(this.#parts.clock, privateKey))
  }

  /** Drops the token and requests no other. Running calls continue. */
  close(): void {
    this.#parts.keeper?.close()
  }

  /** The same at the end of a block: `await using session = await connect()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  #fetching(manner: RefusalHandling): typeof globalThis.fetch {
    return (input, init) => this.#governed.send(input, init, manner)
  }

  #keeper(what: string): TokenKeeper {
    const { keeper } = this.#parts
    if (keeper === null) throw new PlatError(`${what} is not available with plat run, whose forwarder holds the token`)
    return keeper
  }

  #exchanger(): Exchanger {
    const { identityURL, fetch, clock } = this.#parts
    if (identityURL === null)
      throw new PlatError('the address of the identity broker is missing: set PLAT_IDENTITY_URL or identityURL')
    return new Exchanger({ identityURL, fetch, clock })
  }

  #ownRoute(): string {
    const { claims } = this
    const route = claims === null ? this.#parts.route : `${claims.namespace}.${claims.agent}`
    if (route === null) throw new PlatError('pass the model route: the agent is not known from a token')
    return route
  }
}

/** Placeholder, because clients require a key; the session's fetch replaces it by the token. */
const IN_PLACE = 'in-place-of-the-session-token'

/** `notes`, or `<namespace>/notes`. */
function pathOf(server: string): string {
  return server.split('/').map(encodeURIComponent).join('/')
}
