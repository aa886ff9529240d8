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

/** What a session is made of; {@link connect} puts it together. */
export interface SessionParts {
  /** Without a slash at its end. */
  readonly gatewayURL: string
  /** The gateway as proofs and cards name it; null: as it is called. */
  readonly publicURL: string | null
  readonly identityURL: string | null
  /** Null: a forwarder adds the token. */
  readonly keeper: TokenKeeper | null
  /** Name of the session, where no token tells it. */
  readonly name: string | null
  /** The model route of the agent itself, where no token tells it. */
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

/** What code in the session's sandbox answered. */
export interface ExecResult {
  /** The sandbox's own status, below 500. */
  readonly status: number
  readonly result: unknown
}

/**
 * A governed session of an agent: who it is, and how it calls. Made by {@link connect}.
 *
 * @example
 * const session = await connect()
 * const openai = new OpenAI(session.openai())
 */
export class Session {
  /** Where every call goes, without a slash at its end. */
  readonly gatewayURL: string
  /**
   * `fetch` for calls to the gateway and nowhere else: with the session's token, and a proof where the token is bound to a key. A call
   * that the gateway says may come again is repeated. A refusal rejects with {@link DeniedError}, but for the statuses 400, 404 and 405, which
   * clients of protocols act upon; errors of JSON-RPC come as answers, and {@link deniedBy} reads them in what clients throw.
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

  /** Variables that the session was told at its bootstrap; empty otherwise. */
  get env(): Readonly<Record<string, string>> {
    return this.#parts.keeper?.env ?? {}
  }

  /**
   * What the session's token says: user, groups, taints that it inherited, scopes, end. Null under `plat run`, which keeps the token.
   *
   * @example
   * if (session.claims?.groups.includes('staff')) offerInternalDocuments()
   */
  get claims(): SessionClaims | null {
    return this.#parts.keeper?.claims ?? null
  }

  /**
   * A token that counts now. For what `session.fetch` cannot do; a bound token needs a proof with each use.
   * @throws TokenUnavailableError
   */
  async token(): Promise<string> {
    return (await this.#keeper('the token').current()).text
  }

  /**
   * An MCP server, for the transports of `@modelcontextprotocol/client` and of version 1, `@modelcontextprotocol/sdk`.
   *
   * @param options `approvalWaitSeconds`: a call that needs a person's approval answers after this time that it waits
   *   (`ApprovalPendingError`); without it the call is held until it is decided, or the client gives up.
   * @example
   * const { url, ...options } = session.mcp('notes')
   * await client.connect(new StreamableHTTPClientTransport(url, options))
   */
  mcp(server: string, options: { readonly approvalWaitSeconds?: number } = {}): McpAddress {
    const { approvalWaitSeconds: seconds } = options
    return {
      url: new URL(`${this.gatewayURL}/mcp/${pathOf(server)}`),
      fetch: this.fetch,
      requestInit: { headers: seconds === undefined ? {} : { prefer: `wait=${Math.trunc(seconds)}` } },
    }
  }

  /**
   * Options of the client of OpenAI for a model route; the agent's own where none is named. The client repeats by itself what may be repeated.
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
   * Options of the client of Anthropic for a model route; the agent's own where none is named.
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
   * Runs code in the session's own sandbox (`exec.enabled` of the gateway, profile `codeInterpreter` of the agent).
   *
   * @throws DeniedError when the gateway refuses.
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
    if (result === undefined) throw new PlatError('the result is no JSON')
    return { status: response.status, result }
  }

  /**
   * Exchanges the session's token at the broker: for a smaller one of another audience, or for a credential of a cloud.
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
   * A session that acts for the caller of this agent and for its user: for calls that go on from a call. It ends with what was delegated
   * and is not renewed.
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
   * Binds the session to a key from now on (DPoP): a token that leaks is worth nothing without it. `connect({ dpop: true })` does it from
   * the start.
   *
   * @throws IdentityRefusedError when somebody else has bound the token already.
   * @example
   * await session.bind()
   */
  async bind(privateKey?: string): Promise<void> {
    await this.#keeper('binding').bindTo(new Prover(this.#parts.clock, privateKey))
  }

  /** Forgets the token and asks for no other. Calls that run go on. */
  close(): void {
    this.#parts.keeper?.close()
  }

  #fetching(manner: RefusalHandling): typeof globalThis.fetch {
    return (input, init) => this.#governed.send(input, init, manner)
  }

  #keeper(what: string): TokenKeeper {
    const { keeper } = this.#parts
    if (keeper === null) throw new PlatError(`${what} is not the agent's here: the forwarder of plat run adds it`)
    return keeper
  }

  #exchanger(): Exchanger {
    const { identityURL, fetch, clock } = this.#parts
    if (identityURL === null)
      throw new PlatError('the identity broker is not known: set PLAT_IDENTITY_URL or identityURL')
    return new Exchanger({ identityURL, fetch, clock })
  }

  #ownRoute(): string {
    const { claims } = this
    const route = claims === null ? this.#parts.route : `${claims.namespace}.${claims.agent}`
    if (route === null) throw new PlatError('name the model route: no token tells the agent')
    return route
  }
}

/** Clients insist on a key; the session's fetch puts the token in its place. */
const IN_PLACE = 'in-place-of-the-session-token'

/** `notes`, or `<namespace>/notes`. */
function pathOf(server: string): string {
  return server.split('/').map(encodeURIComponent).join('/')
}
