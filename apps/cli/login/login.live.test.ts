import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { type AccountsProvider, passAs, startAccountsProvider } from '@plat/testkit/oidc/accounts'
import { Browser } from '@plat/testkit/oidc/browser'
import { until } from '@plat/testkit/until'
import { approvalsDecide, approvalsList } from '../approvals/approvals.ts'
import { withFetchedLedger } from '../audit/fetched.ts'
import { contextSet } from '../context/context.ts'
import { findGateway, useFlags } from '../shared/gateway.ts'
import { printed, putResource } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp, type Up } from '../up/up.ts'
import { type LoginOptions, login } from './login.ts'
import { loginAt, loginsFile } from './logins.ts'
import { logout } from './logout.ts'
import { Provider } from './provider.ts'
import { whoami } from './whoami.ts'

const RESOURCE = 'https://plat.example/admin'
const AUDIENCE = 'plat-admin'
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
/** Shorter than what commands refresh in advance: every command refreshes. */
const BRIEF_SECONDS = 20

let idp: AccountsProvider
let up: Up
let dir = ''
const contextsBefore = process.env.PLAT_CONTEXTS

/** A public client of a native program: its redirect may have any port (RFC 8252, section 7.3). */
function clientOf(id: string) {
  return {
    client_id: id,
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    redirect_uris: ['http://127.0.0.1/callback'],
    grant_types: ['authorization_code', 'refresh_token', DEVICE],
  }
}

before(async () => {
  dir = tempFolder()
  const groups = { ada: ['leads'], kim: ['watchers'] }
  const resource = { indicator: RESOURCE, audience: AUDIENCE, groups, lifetime: BRIEF_SECONDS }
  idp = await startAccountsProvider({ clients: [clientOf('plat-cli')], resource })
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'p', tools: [{ name: 'notes' }] })
  const server = { url: 'http://127.0.0.1:9/mcp', toolPins: { mode: 'off' } }
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', server)
  const rules = [{ name: 'ask', action: 'require_approval', match: { servers: ['notes'] } }]
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules })
  const oidc = { issuer: idp.url, audience: AUDIENCE, clientID: 'plat-cli', scopes: ['openid'], resource: RESOURCE }
  const roles = { admin: ['leads'], viewer: ['watchers'] }
  const config = { adminAuth: { mode: 'both', roles, oidc } }
  await writeFile(join(dir, 'gateway.json'), JSON.stringify(config))
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})

after(async () => {
  if (contextsBefore === undefined) delete process.env.PLAT_CONTEXTS
  else process.env.PLAT_CONTEXTS = contextsBefore
  await up.stop()
  await idp.close()
})

beforeEach(() => {
  process.env.PLAT_CONTEXTS = join(tempFolder(), 'contexts.json')
})

/** Logs in with a browser in which `person` logs in. */
function byBrowser(person: string, more: Partial<LoginOptions> = {}) {
  const open = async (url: URL) => {
    const browser = new Browser()
    await browser.open(url)
    await passAs(browser, idp, person)
  }
  return printed((output) => login({ dir, port: 0, open: (url) => void open(url), ...more }, output))
}

const who = async () => (await printed((output) => whoami({ dir, output: 'table' }, output))).text
const stored = () => loginAt(process.env, up.env.PLAT_ADMIN_URL)

test('a person logs in with a browser, and approves under their own name', async () => {
  assert.match(await who(), /caller +token:admin, the static token for emergencies; log in: plat login$/m)
  const { code, text } = await byBrowser('ada')
  assert.equal(code, 0)
  assert.match(text, /\nlogged in at http:\/\/127\.0\.0\.1:\d+ as user:ada$/)
  assert.match(await who(), /caller +user:ada\nroles +admin/)
  assert.equal((await stat(loginsFile(process.env))).mode & 0o777, 0o600)
  assert.doesNotMatch(text, new RegExp((await stored())?.refreshToken ?? '-'))

  const minted = await printed((output) =>
    tokenMint({ dir, agent: 'assistant', session: 's-1', scope: ['tools:notes'], format: 'json' }, output),
  )
  const call = fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${JSON.parse(minted.text).token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}',
  })
  const waiting = async () => (await printed((output) => approvalsList({ dir, output: 'name' }, output))).text
  await until(async () => (await waiting()) !== '', 'the approval')
  const id = await waiting()
  const decided = await printed((output) => approvalsDecide({ dir, id, verdict: 'approve', output: 'json' }, output))
  await (await call).text()
  assert.deepEqual(
    JSON.parse(decided.text).quorum.votes.map((vote: { by: string }) => vote.by),
    ['user:ada'],
  )
})

test('a person logs in on another device with a code', async () => {
  const lines: string[] = []
  const output = { out: (line: string) => void lines.push(line), err: (line: string) => void lines.push(line) }
  let pauses = 0
  const pause = async () => {
    pauses++
    if (pauses === 1) return
    const address = /^or open (\S+)$/m.exec(lines.join('\n'))?.[1] ?? ''
    const browser = new Browser()
    await browser.open(address)
    await browser.submit({})
    await browser.submit({})
    await passAs(browser, idp, 'kim')
  }
  await contextSet('here', { adminURL: up.env.PLAT_ADMIN_URL, login: 'device' }, output)
  assert.equal(await login({ context: 'here', port: 0, pause }, output), 0)
  assert.match(lines.join('\n'), /enter the code [A-Z]{4}-[A-Z]{4}\n/)
  assert.equal(pauses, 2, 'the first poll finds that the person has not decided')
  assert.match(await who(), /caller +user:kim\nroles +viewer/)
  const { env } = await findGateway(dir)
  await assert.rejects(
    withFetchedLedger(env, async () => 0),
    /needs the role auditor in all namespaces/,
  )
})

test('commands that run at the same time each refresh the login, and none uses a refresh token twice', async () => {
  await byBrowser('ada')
  const first = (await stored())?.refreshToken
  const names = await Promise.all([who(), who(), who()])
  for (const name of names) assert.match(name, /user:ada/)
  assert.notEqual((await stored())?.refreshToken, first)
  assert.equal(idp.lines().filter((line) => line.startsWith('refused refresh_token')).length, 0)
})

test('logout revokes the login at the provider, and commands use the static token again', async () => {
  await byBrowser('ada')
  const last = await stored()
  assert.ok(last?.refreshToken)
  assert.match((await printed((output) => logout({ dir }, output))).text, /^logged out at /)
  assert.equal(await stored(), null)
  assert.match(await who(), /token:admin/)
  const provider = await Provider.discover(last)
  await assert.rejects(provider.refresh(last.refreshToken), /invalid_grant/)
  assert.match((await printed((output) => logout({ dir }, output))).text, /^there is no login at /)
})

test('an expired login without refresh token names the next step, and no static token takes its place', async () => {
  await byBrowser('ada')
  const file = loginsFile(process.env)
  const logins = JSON.parse(await readFile(file, 'utf8'))
  Object.assign(logins.logins[up.env.PLAT_ADMIN_URL], { refreshToken: null, expiresAt: '2026-01-01T00:00:00Z' })
  await writeFile(file, JSON.stringify(logins))
  await assert.rejects(who(), /the login at .* has expired; log in again with plat login -admin-url/)
})

test('another local program cannot end or take over a login that waits', async () => {
  const { code } = await byBrowser('ada', {
    open: async (url) => {
      const redirect = url.searchParams.get('redirect_uri') ?? ''
      const forged = await fetch(`${redirect}?code=x&state=forged&iss=${encodeURIComponent(idp.url)}`)
      assert.equal(forged.status, 400)
      assert.equal((await fetch(new URL('/', redirect))).status, 404)
      const browser = new Browser()
      await browser.open(url)
      await passAs(browser, idp, 'ada')
    },
  })
  assert.equal(code, 0)
})

test('a refusal of the provider ends the login', async () => {
  const open = async (url: URL) => {
    const state = url.searchParams.get('state') ?? ''
    const refusal = new URLSearchParams({ state, iss: idp.url, error: 'access_denied', error_description: 'not today' })
    await fetch(`${url.searchParams.get('redirect_uri')}?${refusal}`)
  }
  await assert.rejects(byBrowser('ada', { open }), { message: 'the login failed: access_denied: not today' })
  assert.equal(await stored(), null)
  const mixed = async (url: URL) => {
    const state = url.searchParams.get('state') ?? ''
    const foreign = new URLSearchParams({ state, iss: 'https://other.example', code: 'x' })
    await fetch(`${url.searchParams.get('redirect_uri')}?${foreign}`)
  }
  await assert.rejects(byBrowser('ada', { open: mixed }), /the login failed: .*iss/, 'RFC 9207')
})

test('tokens of a login go to no other address, and not over plain http to another machine', async () => {
  await byBrowser('ada')
  const env = { PLAT_CONTEXTS: process.env.PLAT_CONTEXTS }
  await assert.rejects(useFlags({ adminUrl: 'http://127.0.0.1:9' }, { ...env }), {
    exitCode: 2,
    message: /needs -token-file/,
  })
  const named = { ...env }
  await useFlags({ adminUrl: `${up.env.PLAT_ADMIN_URL}/` }, named)
  const found = await findGateway(undefined, { env: named })
  assert.deepEqual([found.env.PLAT_ADMIN_URL, found.env.PLAT_ADMIN_TOKEN], [up.env.PLAT_ADMIN_URL, ''])
  assert.ok(await found.env.login?.token())
  const remote = printed((output) => login({ adminUrl: 'http://plat.example', port: 0 }, output))
  await assert.rejects(remote, /the admin API http:\/\/plat\.example is not an https address/)
})

test('a file of logins that others can read, or that is damaged, is not used', async () => {
  await byBrowser('ada')
  const file = loginsFile(process.env)
  await chmod(file, 0o644)
  await assert.rejects(who(), /can be read by other users and is not used; close it with: chmod 600/)
  await chmod(file, 0o600)
  await writeFile(file, '{')
  await assert.rejects(who(), /is not JSON; remove it, and log in again/)
  assert.equal(dirname(file), dirname(process.env.PLAT_CONTEXTS ?? ''))
})

test('a gateway without people, and a provider without tokens for it, are one line with the next step', async (t) => {
  const plain = tempFolder()
  await putResource(plain, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules: [] })
  const other = await startUp({ dir: plain, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => other.stop())
  const at = (more: object) => byBrowser('ada', { dir: undefined, ...more })
  await assert.rejects(
    at({ adminUrl: other.env.PLAT_ADMIN_URL }),
    /accepts the static token only: set adminAuth\.mode to both/,
  )
  const client = { issuer: idp.url, clientID: 'plat-cli', audience: 'another', resource: RESOURCE }
  const { redeemed } = await redeemAs(client)
  await assert.rejects(
    redeemed,
    /issued no token for the audience another of the gateway; set adminAuth\.oidc\.resource/,
  )
})

/** The code flow alone, with the client of a gateway that is configured otherwise. */
async function redeemAs(client: Parameters<typeof Provider.discover>[0]) {
  const provider = await Provider.discover(client)
  const { url, redeem } = await provider.codeFlow('http://127.0.0.1:9/callback', ['openid'])
  const browser = new Browser()
  const isBack = ({ port }: URL) => port === '9'
  await browser.open(url, isBack)
  const page = await passAs(browser, idp, 'ada', isBack)
  await until(() => page.url.port === '9', 'the redirect')
  return { redeemed: redeem(page.url.searchParams) }
}
