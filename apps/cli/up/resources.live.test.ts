import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { tokenMint } from '../token/mint.ts'
import { startUp, type Up } from './up.ts'

/** Revision of the protocol that has no sessions. */
const MODERN = '2026-07-28'
const MINUTE_MS = 60_000

let up: Up
let dir = ''
let origin = ''

/** Answers each call with the path that it came to; `/silent` never. */
const upstream = createServer(async (request, response) => {
  const { id } = Object(await json(request))
  if (request.url === '/silent') return
  const result = { content: [{ type: 'text', text: request.url }], resultType: 'complete' }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
})

async function put(kind: 'Agent' | 'MCPServer' | 'ToolPolicy', key: string, spec: object): Promise<void> {
  const plural = { Agent: 'agents', MCPServer: 'mcpservers', ToolPolicy: 'toolpolicies' }[kind]
  const [namespace = '', name = ''] = key.split('/')
  const file = path.join(dir, 'resources', plural, namespace, `${name}.yaml`)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name, namespace }, spec }))
}

const server = (key: string, more: object = {}) =>
  put('MCPServer', key, { url: `${origin}/${key.split('/')[1]}`, toolPins: { mode: 'off' }, ...more })

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
  const port = await listening(upstream)
  origin = `http://127.0.0.1:${port}`
  await server('default/notes')
  await server('default/silent', { timeoutSeconds: 1 })
  await server('default/legacy', { protocolVersions: ['2025-06-18', '2025-11-25'] })
  await server('tools/search', { shared: true, allowedNamespaces: ['default'] })
  await server('tools/vault', { shared: true, allowedNamespaces: ['team'] })
  await server('tools/closed', { allowedNamespaces: ['default'] })
  await server('default/payroll', { dataClass: 'restricted' })
  await put('ToolPolicy', 'default/careful', {
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'guarded', action: 'deny', match: { dataClasses: ['restricted'] } },
    ],
  })
  await put('ToolPolicy', 'default/all', { rules: [{ name: 'all', action: 'allow' }] })
  await put('ToolPolicy', 'default/none', { rules: [] })
  await put('ToolPolicy', 'tools/elsewhere', { rules: [{ name: 'all', action: 'allow' }] })
  const head = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all' }
  const tools = [
    { name: 'notes' },
    { name: 'silent' },
    { name: 'legacy' },
    { name: 'payroll' },
    { name: 'search' },
    { name: 'closed' },
    { name: 'find', serverRef: { name: 'search', namespace: 'tools' } },
    { name: 'own', serverRef: { name: 'notes' } },
    { name: 'safe', serverRef: { name: 'vault', namespace: 'tools' } },
    { name: 'old', upstreamURL: `${origin}/old` },
  ]
  await put('Agent', 'default/assistant', { ...head, tools, maxSessionTTL: '5m' })
  await put('Agent', 'default/other', { ...head, tools: [{ name: 'old' }, { name: 'assistant-old' }] })
  await put('Agent', 'default/narrow', { ...head, tools, scopes: ['tools:notes'] })
  await put('Agent', 'default/careful', { ...head, tools, policyRef: 'careful' })
  await put('Agent', 'default/denied', { ...head, tools, policyRef: 'none' })
  await put('Agent', 'default/astray', { ...head, tools, policyRef: 'elsewhere' })
  await put('Agent', 'default/free', { image: 'example.com/a:1', tier: 'tier-0', tools })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})

after(async () => {
  await up.stop()
  upstream.close()
  upstream.closeAllConnections()
  await rm(dir, { recursive: true })
})

async function minted(agent: string): Promise<{ token: string; expiresAt: string }> {
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  await tokenMint({ dir, agent, session: 's', scope: [], format: 'json' }, { out: write, err: write })
  return JSON.parse(lines.join('\n'))
}

/** Calls a tool; answers what the server said, or the code of the refusal. */
async function called(agent: string, name: string): Promise<string> {
  const { token } = await minted(agent)
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/${name}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
  })
  const text = await response.text()
  if (response.status === 403) return String(response.headers.get('www-authenticate'))
  const body = JSON.parse(text)
  return String(denialIn(body)?.data.error ?? body.result.content[0].text)
}

test('an MCPServer serves the agents of its namespace at /mcp/<name>, with scope tools:<name>', async () => {
  // Shows D2.server.url, D2.server.reachedAtMcpName, D2.server.scope and D2.agent.tools.
  assert.equal(await called('assistant', 'notes'), '/notes')
  assert.match(await called('narrow', 'legacy'), /insufficient_scope.*tools:legacy/)
})

test('a shared server is found from the namespaces that it allows, by its short name and by serverRef', async () => {
  // Shows D2.server.shared, D2.server.allowedNamespaces, D2.tools.serverRef.name, D2.tools.serverRef.namespace and
  // D2.tools.serverRef.sharedAcrossNamespaces.
  assert.equal(await called('assistant', 'search'), '/search')
  assert.equal(await called('assistant', 'find'), '/search')
  assert.equal(await called('assistant', 'own'), '/notes')
  assert.equal(await called('assistant', 'safe'), 'unknown_server', 'shared with another namespace')
  assert.equal(await called('assistant', 'closed'), 'unknown_server', 'not shared')
})

test('an upstreamURL is an implicit server of its agent, used only if no other server has the name', async () => {
  // Shows D2.tools.upstreamURL and D2.tools.upstreamURL.implicitServer.
  assert.equal(await called('assistant', 'old'), '/old')
  assert.equal(await called('other', 'old'), 'unknown_server')
  assert.equal(await called('other', 'assistant-old'), 'unknown_server')
  const { servers } = JSON.parse(await readRendered('upstreams.json'))
  assert.equal(servers['default/assistant-old'].implicit, true)
})

test('an agent is governed by the ToolPolicy of its namespace that it names, and denied without one', async () => {
  // Shows D2.agent.policyRef.
  assert.equal(await called('assistant', 'notes'), '/notes')
  for (const agent of ['denied', 'astray', 'free']) assert.equal(await called(agent, 'notes'), 'policy_denied', agent)
})

test('a policy may go by the class of data that a server handles', async () => {
  // Shows D2.server.dataClass.
  assert.equal(await called('assistant', 'payroll'), '/payroll')
  assert.equal(await called('careful', 'payroll'), 'policy_denied')
  assert.equal(await called('careful', 'notes'), '/notes', 'internal, where nothing is said')
})

test('a session gets the scopes and the tier of its agent, or tools:<name> for each tool, for as long as it says', async () => {
  // Shows D2.agent.scopes, D2.agent.scopes.default, D2.agent.tier and D2.agent.maxSessionTTL.
  const claims = async (agent: string) => {
    const { token, expiresAt } = await minted(agent)
    const { scope, plat_tier: tier } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return { scope, tier, left: Date.parse(expiresAt) - Date.now() }
  }
  const narrow = await claims('narrow')
  assert.deepEqual([narrow.scope, narrow.tier], ['tools:notes', 'tier-0'])
  const whole = await claims('other')
  assert.equal(whole.scope, 'tools:old tools:assistant-old')
  const { left } = await claims('assistant')
  assert.ok(left > 4 * MINUTE_MS && left <= 5 * MINUTE_MS, `${left} ms`)
  assert.ok(whole.left > 5 * MINUTE_MS, `${whole.left} ms`)
})

test('a server that does not support the revision is not called: -32022 with the supported versions', async () => {
  // Shows D2.server.protocolVersions, D2.server.protocolVersions.refused and D2.error.protocolVersion.
  const { token } = await minted('assistant')
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const listTools = (name: string) =>
    fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/${name}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': MODERN,
        'mcp-method': 'tools/call',
        'mcp-name': 'read',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'read', arguments: {}, _meta: meta },
      }),
    })
  const refused = await listTools('legacy')
  const { error } = Object(await refused.json())
  assert.deepEqual([refused.status, error.code], [400, -32022])
  assert.deepEqual(error.data.supported, ['2025-06-18', '2025-11-25'])
  assert.equal((await listTools('notes')).status, 200)
  assert.equal(await called('assistant', 'legacy'), '/legacy')
})

test('a server that sends no head within its timeoutSeconds is given up', async () => {
  // Shows D2.server.timeoutSeconds.
  const began = Date.now()
  assert.equal(await called('assistant', 'silent'), 'upstream_timeout')
  assert.ok(Date.now() - began >= 1000)
})

async function readRendered(name: string): Promise<string> {
  return readFile(path.join(up.home.rendered, name), 'utf8')
}
