import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { AuthEntry } from '@plat/resources/rendered'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { type AccountsProvider, passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { Browser } from '@plat/testkit/oidc/browser'
import { type GatewayFixture, logTo, started, TOKEN } from '../../../testing/started.ts'

/** Where browsers reach the gateway of these tests. */
export const PUBLIC = 'https://gateway.example'
const CONNECT = `${PUBLIC}/v1/connect`
const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'

/** Result of a call to the per-user server. */
export interface Called {
  /** User at the provider whose token the server received; null: it was not called. */
  readonly as: string | null
  readonly error: string | null
  readonly connectURL: string | null
  readonly reason: string
}

export interface VaultOptions {
  /** Client of the gateway at the hub; default `vault`. */
  readonly clientID?: string
  /** Overrides of `tokenVault.providers[0]`. */
  readonly provider?: object
  /** Overrides of `tokenVault.login`. */
  readonly login?: object
  /** Overrides of `tokenVault`. */
  readonly vault?: object
  /** Overrides of gateway.json. */
  readonly config?: object
  /** Keys of `identity` beside the public key. */
  readonly identity?: object
  /** Environment of the gateway. */
  readonly env?: NodeJS.ProcessEnv
  readonly auth?: AuthEntry
}

/** An identity provider where users log in, and a provider where they have accounts, each in a separate process. */
export interface Providers {
  readonly idp: AccountsProvider
  readonly hub: AccountsProvider
  close(): Promise<unknown>
}

/** Starts both for all tests of a file. Tokens of the hub's client `vault-brief` expire after two seconds. */
export async function startProviders(): Promise<Providers> {
  const idp = await startAccountsProvider({ clients: [clientOf('login', `${CONNECT}/callback`)] })
  const hub = await startAccountsProvider({ clients: hubClients(), brief: 'vault-brief' })
  return { idp, hub, close: () => Promise.all([idp.close(), hub.close()]) }
}

/**
 * The same with an identity provider that issues assertions for the hub (draft ID-JAG). Its ID tokens expire after two seconds, so that
 * each assertion but the first needs the refresh token of the login.
 */
export async function startVouchingProviders(): Promise<Providers> {
  const exchanges = { grant_types: ['authorization_code', 'refresh_token', TOKEN_EXCHANGE] }
  const idp = await startAccountsProvider({
    clients: [clientOf('login', `${CONNECT}/callback`, exchanges)],
    brief: 'login',
    vouches: { clientId: 'vault-brief' },
  })
  const clients = hubClients({ grant_types: ['authorization_code', JWT_BEARER] })
  const hub = await startAccountsProvider({ clients, brief: 'vault-brief', believes: { issuer: idp.url } })
  return { idp, hub, close: () => Promise.all([idp.close(), hub.close()]) }
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

function hubClients(more: object = {}) {
  const redirect = `${CONNECT}/hub/callback`
  const post = { token_endpoint_auth_method: 'client_secret_post', ...more }
  return [clientOf('vault', redirect, post), clientOf('vault-brief', redirect, post), clientOf('vault-basic', redirect)]
}

/** A client of the test providers. */
export function clientOf(id: string, redirect: string, more: object = {}): Readonly<Record<string, unknown>> {
  return {
    client_id: id,
    client_secret: secretOf(id),
    redirect_uris: [redirect],
    grant_types: ['authorization_code', 'refresh_token'],
    ...more,
  }
}

function secretOf(id: string): string {
  return `${id}-secret-of-the-tests-of-the-vault`
}

/**
 * A gateway with a vault, an identity provider `idp` where users log in, a provider `hub` where they have accounts, and a server `notes`
 * that checks received tokens at the hub.
 */
export class VaultFixture {
  readonly idp: AccountsProvider
  readonly hub: AccountsProvider
  readonly dir: string
  readonly #t: TestContext
  readonly #config: object
  readonly #vault: object
  readonly #server: HubServer
  readonly #lines: string[] = []
  readonly #env: NodeJS.ProcessEnv
  #running: GatewayFixture

  private constructor(t: TestContext, parts: Parts) {
    this.idp = parts.idp
    this.hub = parts.hub
    this.#t = t
    this.dir = parts.dir
    this.#config = parts.config
    this.#vault = parts.vault
    this.#server = parts.server
    this.#running = parts.running
    this.#lines = parts.lines
    this.#env = parts.env
  }

  static async start(t: TestContext, { idp, hub }: Providers, wish: VaultOptions = {}): Promise<VaultFixture> {
    const dir = tempFolder()
    const server = await hubServer(t, hub.url)
    const put = (name: string, text: string) => written(dir, name, text)
    const auth = wish.auth ?? { type: 'none', perUser: true, provider: 'hub' }
    const entry = { url: server.url, namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth }
    const registry = { version: 1, servers: { 'default/notes': entry }, bindings: {}, agentWeb: {} }
    const { clientID = 'vault' } = wish
    const provider = {
      name: 'hub',
      issuer: hub.url,
      clientID,
      clientSecretFile: await put('hub.secret', secretOf(clientID)),
      scopes: ['openid', 'read'],
      allowedServers: ['default/notes'],
      ...wish.provider,
    }
    const vault = {
      enabled: true,
      keyURI: await put('vault.key', randomBytes(32).toString('base64')),
      storePath: join(dir, 'vault.jsonl'),
      publicBaseURL: PUBLIC,
      login: {
        issuer: idp.url,
        clientID: 'login',
        clientSecretFile: await put('login.secret', secretOf('login')),
        ...wish.login,
      },
      providers: [provider],
      ...wish.vault,
    }
    const config = {
      upstreams: {},
      upstreamsFile: await put('upstreams.json', JSON.stringify(registry)),
      auditPath: join(dir, 'audit.jsonl'),
      ...wish.config,
    }
    const lines: string[] = []
    const { env = {}, identity = {} } = wish
    const running = await started(t, { ...config, tokenVault: vault }, true, { log: logTo(lines), env, identity })
    const fixture = new VaultFixture(t, { dir, idp, hub, server, config, vault, running, lines, env })
    t.after(() => fixture.#running.gateway.drain())
    return fixture
  }

  get url(): string {
    return this.#running.gateway.url
  }

  /** Keys of gateway.json that name its state. */
  get stateConfig(): object {
    return { ...this.#config, tokenVault: this.#vault }
  }

  get keyURI(): string {
    return join(this.dir, 'vault.key')
  }

  /** Restarts the gateway on the same files with these overrides of `tokenVault` and of gateway.json. */
  async restart(vault: object, between: () => Promise<void> = async () => {}, own: object = {}): Promise<void> {
    await this.#running.gateway.drain()
    await between()
    const config = { ...this.#config, ...own, tokenVault: { ...this.#vault, ...vault } }
    this.#running = await started(this.#t, config, true, { log: logTo(this.#lines), env: this.#env })
  }

  /** Writes a file of the test. Returns its path. */
  file(name: string, text: string): Promise<string> {
    return written(this.dir, name, text)
  }

  store(): Promise<string> {
    return readFile(join(this.dir, 'vault.jsonl'), 'utf8')
  }

  /** Everything logged and recorded so far. */
  async written(): Promise<string> {
    return this.#lines.join('\n') + (await readFile(join(this.dir, 'audit.jsonl'), 'utf8'))
  }

  /** Every token that the server received. */
  seen(): readonly string[] {
    return [...this.#server.tokens]
  }

  /** Status of the hub's response to a token. */
  async askHub(token: string): Promise<number> {
    return (await fetch(`${this.hub.url}/me`, { headers: { authorization: `Bearer ${token}` } })).status
  }

  /** A new browser. */
  browser(): Browser {
    return new Browser({ [PUBLIC]: this.url })
  }

  /** Logs in as `user`. Returns the confirmation page. */
  async login(browser: Browser, user: string, provider = 'hub'): ReturnType<Browser['open']> {
    await browser.open(`${CONNECT}/${provider}`)
    return passAs(browser, this.idp, user)
  }

  /** Connects the account `person` at the hub for `user`, up to the last page or `stopAt`. */
  async connect(
    browser: Browser,
    user: string,
    person: string,
    stopAt?: (url: URL) => boolean,
  ): ReturnType<Browser['open']> {
    const loggedIn = await this.login(browser, user)
    assert.match(loggedIn.text, /Connect your hub account\?/, loggedIn.text)
    const page = await browser.submit({ action: 'connect' }, stopAt)
    return page.status === 0 ? page : passAs(browser, this.hub, person, stopAt)
  }

  /** Calls the server in a session that acts for `user`. */
  async callAs(user: string | null, claims: Readonly<Record<string, unknown>> = {}): Promise<Called> {
    const act = user === null ? undefined : { sub: `user:${user}` }
    const more = { act, plat_principal_verified: 'requester', scope: 'tools:notes', ...claims }
    const response = await fetch(`${this.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#running.issuer.token(more)}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: CALL,
    })
    const answer = JSON.parse(await response.text())
    const denial = denialIn(answer)
    if (denial === null)
      return { as: JSON.parse(answer.result.content[0].text).sub, error: null, connectURL: null, reason: '' }
    const { error, connectURL = null } = denial.data
    return {
      as: null,
      error: String(error),
      connectURL: connectURL === null ? null : String(connectURL),
      reason: denial.message,
    }
  }

  /** Calls the admin API. */
  async admin(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const headers = { authorization: `Bearer ${TOKEN}`, ...type }
    const response = await fetch(this.url + path, { method, headers, ...sent })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
}

interface Parts {
  readonly dir: string
  readonly idp: AccountsProvider
  readonly hub: AccountsProvider
  readonly server: HubServer
  readonly config: object
  readonly vault: object
  readonly running: GatewayFixture
  readonly lines: string[]
  readonly env: NodeJS.ProcessEnv
}

async function written(dir: string, name: string, text: string): Promise<string> {
  await writeFile(join(dir, name), `${text}\n`)
  return join(dir, name)
}

interface HubServer {
  readonly url: string
  readonly tokens: ReadonlySet<string>
}

/** A server that checks received tokens at the hub and refuses unknown ones. */
async function hubServer(t: TestContext, hub: string): Promise<HubServer> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  const tokens = new Set<string>()
  upstream.answers(async ({ headers: { authorization = '' } }, response) => {
    tokens.add(authorization.replace('Bearer ', ''))
    const profile = await fetch(`${hub}/me`, { headers: { authorization } })
    const result = { content: [{ type: 'text', text: await profile.text() }] }
    response
      .writeHead(profile.status === 200 ? 200 : 401, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  return { url: upstream.url, tokens }
}
