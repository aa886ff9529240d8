import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { startUp, type Up } from '@plat/cli'
import { freePort, tempFolder } from '@plat/testkit/local'
import { startAccountsProvider } from '@plat/testkit/oidc/accounts'
import type { Page } from 'playwright-core'
import { startNotes } from '../../examples/quickstart/notes/server.ts'

const AUDIENCE = 'plat-admin'
const RESOURCE = 'https://plat.example/admin'

/** A real `plat up` with one MCP server and an identity provider. */
export interface TestConsole {
  readonly up: Up
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** Where people log in. */
  readonly provider: string
  /** Calls a tool as an agent; resolves with the text of the response. */
  callTool(call: ToolCall): Promise<string>
  /** Calls the admin API with the static token. */
  admin(method: string, path: string, body?: object): Promise<Response>
  /** Logs a browser in by the one-time link of `plat console`, with all roles. */
  logInByLink(page: Page): Promise<void>
  /** Logs a browser in at the identity provider, on the page that it shows. */
  logInAs(page: Page, person: string): Promise<void>
  close(): Promise<void>
}

export interface ToolCall {
  readonly session: string
  readonly tool: string
  readonly args?: object
  readonly user?: string
  readonly signal?: AbortSignal
}

export async function startConsole(): Promise<TestConsole> {
  const dir = tempFolder()
  const origin = `http://127.0.0.1:${await freePort()}`
  const notes = await startNotes({ port: 0, dir })
  const people = await startAccountsProvider({
    clients: [
      { client_id: 'console', token_endpoint_auth_method: 'none', redirect_uris: [`${origin}/console/callback`] },
    ],
    resource: { indicator: RESOURCE, audience: AUDIENCE, groups: { ada: ['leads'], vera: ['staff'] } },
  })
  await writeResources(dir, notes.url)
  await writeFile(join(dir, 'gateway.json'), JSON.stringify(gatewayKeys(people.url)))
  const up = await startUp({ dir, listen: origin.replace('http://', ''), identityListen: '127.0.0.1:0', log: 'file' })
  const admin: TestConsole['admin'] = (method, path, body) => callAdmin(up, { method, path, body })
  return {
    up,
    origin,
    provider: people.url,
    callTool: (call) => callTool(up, call),
    admin,
    async logInByLink(page) {
      const made: { readonly path: string } = JSON.parse(await (await admin('POST', '/v1/console/links')).text())
      await page.goto(origin + made.path)
      await page.getByRole('button', { name: 'Log out' }).waitFor()
    },
    async logInAs(page, person) {
      await page.getByRole('link', { name: 'Log in' }).click()
      await page.locator('input[name=login]').fill(person)
      await page.locator('input[name=password]').fill('any')
      await page.locator('button[type=submit]').click()
      await page.locator('button[type=submit]', { hasText: 'Continue' }).click()
      await page.getByRole('button', { name: 'Log out' }).waitFor()
    },
    async close() {
      await up.stop()
      await people.close()
      await notes.close()
    },
  }
}

function gatewayKeys(issuer: string): object {
  return {
    approvalAnswerAfterSeconds: 600,
    auditCheckpointIntervalSeconds: 1,
    approvalPreview: { mode: 'redacted', maxBytes: 4096 },
    adminAuth: {
      mode: 'both',
      roles: { approver: ['leads'], viewer: ['staff'] },
      oidc: { issuer, audience: AUDIENCE, clientID: 'console', scopes: ['offline_access'], resource: RESOURCE },
    },
  }
}

async function writeResources(dir: string, url: string): Promise<void> {
  const put = async (file: string, kind: string, spec: object) => {
    const target = join(dir, 'resources', file)
    await mkdir(dirname(target), { recursive: true })
    const metadata = { name: file.split('/').at(-1)?.replace('.yaml', ''), namespace: 'default' }
    await writeFile(target, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
  }
  await put('mcpservers/default/notes.yaml', 'MCPServer', { url })
  await put('agents/default/assistant.yaml', 'Agent', {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'assistant',
    tools: [{ name: 'notes' }],
  })
  const rules = [
    {
      name: 'hold',
      action: 'require_approval',
      match: { tools: ['delete_note'] },
      reason: 'deleting needs a second pair of eyes',
    },
    { name: 'never', action: 'deny', match: { tools: ['read_note'] }, reason: 'notes are not read' },
    { name: 'rest', action: 'allow', match: { tools: ['add_note', 'list_notes'] } },
  ]
  await put('toolpolicies/default/assistant.yaml', 'ToolPolicy', { rules })
}

async function callTool(up: Up, { session, tool, args = {}, user = 'uma', signal }: ToolCall): Promise<string> {
  const minted = await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      namespace: 'default',
      agent: 'assistant',
      session,
      user,
      tier: 'tier-0',
      scopes: ['tools:notes'],
      ttlSeconds: 600,
    }),
  })
  const { token }: { readonly token: string } = JSON.parse(await minted.text())
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
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
