import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { until } from '@plat/testkit/until'
import { tokenMint } from '../token/mint.ts'
import { startUp } from './up.ts'

const FOLDERS = { Agent: 'agents', MCPServer: 'mcpservers', ToolPolicy: 'toolpolicies' } as const

/** An MCP server that answers each call with the token that it was shown. */
async function echo(t: TestContext): Promise<string> {
  const server = createServer(async (request, response) => {
    const { id } = Object(await json(request))
    const result = { content: [{ type: 'text', text: request.headers.authorization ?? 'nothing' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const port = await listening(server)
  return `http://127.0.0.1:${port}/mcp`
}

/** A folder with an agent and two servers, one of them with a Secret that does not exist yet. */
async function written(url: string) {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const put = async (path: string, content: object | string) => {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  const resource = (kind: keyof typeof FOLDERS, name: string, spec: object) =>
    put(`resources/${FOLDERS[kind]}/default/${name}.yaml`, {
      apiVersion: 'plat.dev/v1alpha1',
      kind,
      metadata: { name, namespace: 'default' },
      spec,
    })
  const toolPins = { mode: 'off' }
  const secretRef = { name: 'notes', key: 'token' }
  await resource('MCPServer', 'notes', { url, toolPins, auth: { type: 'bearerSecret', secretRef } })
  const exchange = { type: 'tokenExchange', tokenExchange: { audience: 'reports' } }
  await resource('MCPServer', 'reports', { url, toolPins, auth: exchange })
  await resource('ToolPolicy', 'all', { rules: [{ name: 'all', action: 'allow' }] })
  const tools = [{ name: 'notes' }, { name: 'reports' }]
  await resource('Agent', 'assistant', { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all', tools })
  await put('exchange.json', {
    audiences: { reports: { allowedScopes: ['tools:reports'], allowedNamespaces: ['default'] } },
  })
  await put('gateway.json', { policyReloadSeconds: 1 })
  return { dir, put }
}

test('plat up presents Secrets of .plat/secrets and exchanged tokens to servers, as the resources declare', async (t) => {
  const { dir, put } = await written(await echo(t))
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(async () => {
    await up.stop()
    await rm(dir, { recursive: true })
  })
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  await tokenMint({ dir, agent: 'assistant', session: 's', scope: [], format: 'json' }, { out: write, err: write })
  const { token } = JSON.parse(lines.join('\n'))
  const called = async (server: string): Promise<string> => {
    const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/${server}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
    })
    const body = JSON.parse(await response.text())
    return String(denialIn(body)?.data.error ?? body.result.content[0].text)
  }

  const missing =
    'mcpservers/default/notes.yaml:1: spec.auth.secretRef: no Secret default/notes/token: calls of this server are refused'
  assert.deepEqual((await up.problems()).refused, [missing])
  const problems = await fetch(`${up.env.PLAT_ADMIN_URL}/v1/problems`, {
    headers: { authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}` },
  })
  const { known, items } = JSON.parse(await problems.text())
  assert.deepEqual(
    [known, items[0].severity, items[0].file, items[0].line],
    [true, 'refused', 'mcpservers/default/notes.yaml', 1],
  )
  assert.match(items[0].text, /^spec.auth.secretRef: no Secret/)
  assert.equal(await called('notes'), 'upstream_credential')
  await put('.plat/secrets/default/notes/token', 'a-secret\n')
  await until(async () => (await called('notes')) === 'Bearer a-secret', 'the Secret to be shown')
  await until(async () => (await up.problems()).refused.length === 0, 'nothing to be refused')

  const result = await called('reports')
  const claims = JSON.parse(Buffer.from(result.split('.')[1] ?? '', 'base64url').toString())
  assert.deepEqual([claims.aud, claims.scope, claims.plat_agent], ['reports', 'tools:reports', 'assistant'])
  assert.notEqual(result, `Bearer ${token}`)
})
