import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Browser } from '@plat/testkit/browser'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { type AccountsProvider, type AccountsSetup, passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { type RegistryGround, registryGround } from '../../../testing/registered.ts'
import { folder, TOKEN } from '../../../testing/started.ts'

/** Where browsers reach the gateway of these tests. */
export const PUBLIC = 'https://gateway.example'
const CONNECT = `${PUBLIC}/v1/connect`

/** What a call of the server for each user came to. */
export interface Called {
  /** At the provider, of whoever's token the server saw; null: it was not called. */
  readonly as: string | null
  readonly error: string | null
  readonly connectURL: string | null
  readonly reason: string
}

/** A gateway with a vault, an identity provider where users log in, and a provider `hub` where they have accounts. */
export interface VaultGround extends RegistryGround {
  readonly idp: AccountsProvider
  readonly hub: AccountsProvider
  /** `<auditPath>.vault.jsonl` as it stands. */
  store(): Promise<string>
  /** A browser of somebody's own. */
  browser(): Browser
  /** Logs in as `user` and answers the page that asks whether to go on. */
  login(browser: Browser, user: string, provider?: string): ReturnType<Browser['open']>
  /** Connects the account that `user` has as `person` at the provider, to the last page. */
  connect(browser: Browser, user: string, person: string): ReturnType<Browser['open']>
  /** Calls the server in a session that acts for `user`. */
  callAs(user: string | null, claims?: Readonly<Record<string, unknown>>): Promise<Called>
  admin(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: unknown }>
}

export interface VaultWish {
  readonly provider?: object
  readonly vault?: object
  readonly config?: object
  readonly hub?: Partial<AccountsSetup>
  readonly idp?: Partial<AccountsSetup>
  readonly key?: string
}

const client = (id: string, redirect: string, more: object = {}) => ({
  client_id: id,
  client_secret: `${id}-secret-of-the-tests-of-the-vault`,
  redirect_uris: [redirect],
  grant_types: ['authorization_code', 'refresh_token'],
  ...more,
})

/** Starts all of it. `wish` is laid over the vault's configuration, and over what the providers are told. */
export async function vaultGround(t: TestContext, wish: VaultWish = {}): Promise<VaultGround> {
  const dir = await folder(t)
  const idp = await started(t, { clients: [client('login', `${CONNECT}/callback`)], ...wish.idp })
  const post = { token_endpoint_auth_method: 'client_secret_post' }
  const hub = await started(t, { clients: [client('vault', `${CONNECT}/hub/callback`, post)], ...wish.hub })
  const upstream = await askingServer(t, hub.url)
  const file = async (name: string, text: string) => {
    await writeFile(join(dir, name), text)
    return join(dir, name)
  }
  const auth = { type: 'none', perUser: true, provider: 'hub' } as const
  const storePath = join(dir, 'vault.jsonl')
  const ground = await registryGround(t, {
    servers: { notes: { url: upstream, auth } },
    config: {
      tokenVault: {
        enabled: true,
        keyURI: await file('vault.key', wish.key ?? randomBytes(32).toString('base64')),
        storePath,
        publicBaseURL: PUBLIC,
        login: { issuer: idp.url, clientID: 'login', clientSecretFile: await file('login', secretOf('login')) },
        providers: [
          {
            name: 'hub',
            issuer: hub.url,
            clientID: 'vault',
            clientSecretFile: await file('hub', secretOf('vault')),
            scopes: ['openid', 'read'],
            allowedServers: ['default/notes'],
            ...wish.provider,
          },
        ],
        ...wish.vault,
      },
      ...wish.config,
    },
  })
  return { ...ground, ...people(ground, { idp, hub }), store: () => readFile(storePath, 'utf8') }
}

async function started(t: TestContext, setup: AccountsSetup): Promise<AccountsProvider> {
  const provider = await startAccountsProvider(setup)
  t.after(() => provider.close())
  return provider
}

function secretOf(id: string): string {
  return `${id}-secret-of-the-tests-of-the-vault\n`
}

/** A server that asks the provider whose token it sees, and refuses those that the provider does not know any more. */
async function askingServer(t: TestContext, provider: string): Promise<string> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(async ({ headers }, response) => {
    const asked = await fetch(`${provider}/me`, { headers: { authorization: headers.authorization ?? '' } })
    const text = await asked.text()
    const result = { content: [{ type: 'text', text }] }
    response
      .writeHead(asked.status === 200 ? 200 : 401, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  return upstream.url
}

function people(ground: RegistryGround, { idp, hub }: Pick<VaultGround, 'idp' | 'hub'>) {
  const login: VaultGround['login'] = async (browser, user, provider = 'hub') => {
    await browser.open(`${CONNECT}/${provider}`)
    return passAs(browser, idp, user)
  }
  return {
    idp,
    hub,
    browser: () => new Browser({ [PUBLIC]: ground.url }),
    login,
    async connect(browser: Browser, user: string, person: string) {
      const asked = await login(browser, user)
      assert.match(asked.text, /Connect your hub account\?/, asked.text)
      await browser.submit({ action: 'connect' })
      return passAs(browser, hub, person)
    },
    async callAs(user: string | null, claims: Readonly<Record<string, unknown>> = {}): Promise<Called> {
      const act = user === null ? undefined : { sub: `user:${user}` }
      const more = { act, plat_principal_verified: 'requester', scope: 'tools:notes', ...claims }
      const { text, error } = await ground.call('notes', ground.issuer.token(more))
      const answer = JSON.parse(text)
      const said = answer.result?.content[0].text
      return {
        as: said === undefined ? null : JSON.parse(said).sub,
        error,
        connectURL: answer.error?.data.connectURL ?? null,
        reason: answer.error?.message ?? '',
      }
    },
    async admin(method: string, path: string, body?: object) {
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const init = { method, headers: body === undefined ? { authorization: headers.authorization } : headers, ...sent }
      const response = await fetch(ground.url + path, init)
      const text = await response.text()
      return { status: response.status, body: text === '' ? null : JSON.parse(text) }
    },
  }
}
