import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startUp, type Up } from '@plat/cli'
import { freePort, tempFolder } from '@plat/testkit/local'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { startAccountsProvider } from '@plat/testkit/oidc/accounts'
import type { Browser, Page } from 'playwright-core'
import { startNotes } from '../../examples/quickstart/notes/server.ts'
import { startBrowser } from './chromium.ts'
import { AUDIENCE, type FolderAdditions, RESOURCE, writeFolder } from './folder.ts'
import { logIn } from './login.ts'
import { startWeather, type Weather } from './weather.ts'

/** Seconds since the login of `ida`: too old for what `adminAuth.stepUp` requires. */
const OLD_LOGIN_SECONDS = 1_800
/** A real `plat up` with two MCP servers, a model provider, an identity provider, and a browser. */
export interface TestConsole {
  readonly browser: Browser
  /** The server `weather`, whose tools change; its tool `watch` answers with a stream that does not end. */
  readonly weather: Weather
  /** The provider of the route `chat`. */
  readonly models: Pick<ModelServer, 'answers'>
  readonly up: Up
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** Where people log in. */
  readonly provider: string
  /** Calls a tool as an agent; resolves with the text of the response. */
  callTool(call: ToolCall): Promise<string>
  /** Calls a model by the route `chat`; resolves with the response, whose body has been received. */
  callModel(call: ModelCall): Promise<{ readonly status: number; readonly text: string }>
  /** Calls the admin API with the static token. */
  admin(method: string, path: string, body?: object): Promise<Response>
  /** Logs a browser in by the one-time link of `plat console`, with all roles. */
  logInByLink(page: Page): Promise<void>
  /** Logs a browser in at the identity provider, on the page that it shows. */
  logInAs(page: Page, person: string): Promise<void>
  close(): Promise<void>
}

export interface ToolCall {
  /** Default: `notes`. */
  readonly server?: string
  readonly session: string
  readonly tool: string
  readonly args?: object
  readonly user?: string
  readonly inheritedTaints?: readonly string[]
  readonly signal?: AbortSignal
}

export interface ModelCall {
  readonly agent: string
  readonly session: string
  readonly user: string
  readonly model: string
  readonly groups?: readonly string[]
  /** Message of the user. */
  readonly content?: string
}

export interface ConsoleSetup {
  /** Writes a ledger before the gateway starts. */
  readonly fill?: (auditPath: string) => Promise<void>
  /** Further people who can log in, with their groups. */
  readonly people?: Readonly<Record<string, readonly string[]>>
  /** Further clients of the identity provider. */
  readonly clients?: (origin: string) => readonly Readonly<Record<string, unknown>>[]
  readonly additions?: (base: { readonly origin: string; readonly issuer: string }) => FolderAdditions
}

/** Starts all parts; stops those that run if a later one cannot start. */
export async function startConsole(setup: ConsoleSetup = {}): Promise<TestConsole> {
  const { fill, additions = () => ({}) } = setup
  await using started = new AsyncDisposableStack()
  const dir = tempFolder()
  const origin = `http://127.0.0.1:${await freePort()}`
  const notes = await startNotes({ port: 0, dir })
  started.defer(() => notes.close())
  const weather = await startWeather()
  started.defer(() => weather.close())
  const people = await startPeople(origin, setup)
  started.defer(() => people.close())
  const models = await startModelServer()
  started.defer(() => models.close())
  const urls = { notes: notes.url, weather: weather.url, models: models.url, issuer: people.url }
  await writeFolder(dir, urls, additions({ origin, issuer: people.url }))
  if (fill !== undefined) {
    await mkdir(join(dir, '.plat/state'), { recursive: true, mode: 0o700 })
    await fill(join(dir, '.plat/state/audit.jsonl'))
  }
  const up = await startUp({ dir, listen: origin.replace('http://', ''), identityListen: '127.0.0.1:0', log: 'file' })
  started.defer(() => up.stop())
  const browser = await startBrowser()
  started.defer(() => browser.close())
  const parts = started.move()
  return {
    ...{ weather, models, up, origin, browser, provider: people.url },
    callTool: (call) => callTool(up, call),
    callModel: (call) => callModel(up, call),
    admin: (method, path, body) => callAdmin(up, { method, path, body }),
    async logInByLink(page) {
      const response = await callAdmin(up, { method: 'POST', path: '/v1/console/links', body: undefined })
      const made: { readonly path: string } = JSON.parse(await response.text())
      await page.goto(origin + made.path)
      await page.getByRole('button', { name: 'Log out' }).waitFor()
    },
    logInAs: (page, person) =>
      logIn(page, people.url, { person, start: () => page.getByRole('link', { name: 'Log in' }).click() }),
    close: () => parts.disposeAsync(),
  }
}

/** Starts the identity provider, with a person for each role, and others. */
function startPeople(origin: string, { people: further = {}, clients = () => [] }: ConsoleSetup) {
  const groups = { ada: ['leads'], vera: ['staff'], ida: ['owners'], ...further }
  const client = { client_id: 'console', token_endpoint_auth_method: 'none', require_auth_time: true }
  return startAccountsProvider({
    clients: [{ ...client, redirect_uris: [`${origin}/console/callback`] }, ...clients(origin)],
    resource: { indicator: RESOURCE, audience: AUDIENCE, groups },
    oldLogins: { ida: OLD_LOGIN_SECONDS },
  })
}

interface TokenRequest {
  readonly agent: string
  readonly session: string
  readonly user: string
  readonly scopes: readonly string[]
  /** Groups of the user; labels of the session that it is a fork of. */
  readonly groups?: readonly string[]
  readonly inheritedTaints?: readonly string[]
}

async function mintToken(up: Up, requested: TokenRequest): Promise<string> {
  const minted = await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ namespace: 'default', tier: 'tier-0', ttlSeconds: 600, ...requested }),
  })
  if (!minted.ok) throw new Error(`the broker refused a token: ${await minted.text()}`)
  const { token }: { readonly token: string } = JSON.parse(await minted.text())
  return token
}

async function callModel(up: Up, { model, content = 'Hello', ...who }: ModelCall) {
  const token = await mintToken(up, { ...who, scopes: ['models:chat'] })
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/llm/chat/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_completion_tokens: 50_000, messages: [{ role: 'user', content }] }),
  })
  return { status: response.status, text: await response.text() }
}

async function callTool(up: Up, call: ToolCall): Promise<string> {
  const { session, server = 'notes', tool, args = {}, user = 'uma', inheritedTaints = [], signal } = call
  const scopes = ['tools:notes', 'tools:weather']
  const token = await mintToken(up, { agent: 'assistant', session, user, scopes, inheritedTaints })
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/${server}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } }),
    ...(signal && { signal }),
  })
  return response.text()
}

function callAdmin(
  up: Up,
  { method, path, body }: { method: string; path: string; body: object | undefined },
): Promise<Response> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const headers = { authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}`, ...type }
  return fetch(up.env.PLAT_ADMIN_URL + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
}
