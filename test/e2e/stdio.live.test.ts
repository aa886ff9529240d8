import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startUp, type Up } from '@plat/cli'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { denialIn, denialOf } from '@plat/testkit/mcp/denial'
import { EVERYTHING } from '@plat/testkit/mcp/everything'
import { until } from '@plat/testkit/until'

const PLAT = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))
const CHILD = fileURLToPath(new URL('../../apps/cli/stdio/fixtures/child.mjs', import.meta.url))

const dir = tempFolder()
const lines: string[] = []
let up: Up

const child = { command: process.execPath, args: [CHILD] }
const SERVERS: Readonly<Record<string, object>> = {
  own: { stdio: { ...child, env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'child', key: 'key' } } }] } },
  shared: { stdio: { ...child, perSession: false } },
  everything: { stdio: { command: process.execPath, args: [EVERYTHING, 'stdio'] } },
  // A resource cannot name the socket: the host of a stdio server leads nowhere.
  sly: { url: 'http://own.default.stdio.invalid/default/own' },
}

before(async () => {
  await put('Agent/agents', 'assistant', {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'all',
    tools: Object.keys(SERVERS).map((name) => ({ name })),
  })
  await put('ToolPolicy/toolpolicies', 'all', {
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'no', action: 'deny', match: { tools: ['hang'] }, reason: 'it would never end' },
    ],
  })
  for (const [name, spec] of Object.entries(SERVERS)) await server(name, spec)
  await put('MCPServer/mcpservers', 'everything', { ...SERVERS.everything, toolPins: { mode: 'learn' } })
  await write('.plat/secrets/default/child/key', 'hunter2-hunter2\n')
  await write('gateway.json', JSON.stringify({ policyReloadSeconds: 1 }))
  const options = { dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' } as const
  up = await startUp(options, (line) => lines.push(line))
})

after(() => up.stop())

async function write(path: string, text: string): Promise<void> {
  const file = join(dir, path)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, text)
}

function put(kind: string, name: string, spec: object): Promise<void> {
  const [one = '', many = ''] = kind.split('/')
  const metadata = { name, namespace: 'default' }
  return write(
    `resources/${many}/default/${name}.yaml`,
    JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind: one, metadata, spec }),
  )
}

function server(name: string, spec: object): Promise<void> {
  return put('MCPServer/mcpservers', name, { toolPins: { mode: 'off' }, ...spec })
}

async function tokenOf(session: string): Promise<string> {
  const response = await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      namespace: 'default',
      agent: 'assistant',
      session,
      user: 'ada',
      tier: 'tier-0',
      scopes: Object.keys(SERVERS).map((name) => `tools:${name}`),
      ttlSeconds: 600,
    }),
  })
  return Object(await response.json()).token
}

type Mode = 'legacy' | { pin: '2026-07-28' } | 'auto'

async function client(name: string, session: string, mode: Mode = 'auto'): Promise<Client> {
  const requestInit = { headers: { authorization: `Bearer ${await tokenOf(session)}` } }
  const one = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode }, capabilities: { sampling: {} } },
  )
  one.setRequestHandler('sampling/createMessage', () => ({
    model: 'm',
    role: 'assistant',
    content: { type: 'text', text: `sampled for ${session}` },
  }))
  await one.connect(
    new StreamableHTTPClientTransport(new URL(`${up.env.PLAT_GATEWAY_URL}/mcp/${name}`), { requestInit }),
  )
  return one
}

async function call(one: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const result = await one.callTool({ name, arguments: args })
  const [first] = result.content
  return first?.type === 'text' ? first.text : JSON.stringify(result)
}

test('a server on stdin and stdout is called, denied and recorded like any other', async () => {
  const one = await client('own', 'a', 'legacy')
  assert.equal(await call(one, 'count'), '1')
  const refused = await one.callTool({ name: 'hang', arguments: {} })
  assert.equal(denialOf({ result: refused }).message, 'it would never end')
  assert.match(await call(one, 'ask'), /sampled for a/)
  await one.close()
  const records = () => wholeLines(join(up.home.state, 'audit.jsonl')).join('\n')
  await until(() => records().includes('own.default.stdio.invalid'), 'the record')
  assert.ok(!records().includes(up.home.stdioSocket))
  assert.equal((await stat(up.home.stdioSocket)).mode & 0o777, 0o600)
})

test('each session has a separate process, and a shared server one for all', async () => {
  // Shows D2.server.stdio.perSession.
  const [a, b] = await Promise.all([client('own', 'x', 'legacy'), client('own', 'y', 'legacy')])
  assert.deepEqual([await call(a, 'count'), await call(a, 'count'), await call(b, 'count')], ['1', '2', '1'])
  const [c, d] = await Promise.all([client('shared', 'x', 'legacy'), client('shared', 'y', 'legacy')])
  assert.deepEqual([await call(c, 'count'), await call(d, 'count')], ['1', '2'])
  await Promise.all([a, b, c, d].map((one) => one.close()))
})

/** Calls a tool in revision 2026-07-28, which has no sessions. */
async function callModern(session: string, name: string): Promise<unknown> {
  const revision = '2026-07-28'
  const meta = 'io.modelcontextprotocol'
  const _meta = { [`${meta}/protocolVersion`]: revision, [`${meta}/clientCapabilities`]: {} }
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/own`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await tokenOf(session)}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': revision,
      'mcp-method': 'tools/call',
      'mcp-name': name,
      // Only the gateway names the caller.
      'plat-stdio-session': 'same',
      'plat-stdio-agent': 'same',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta } }),
  })
  return Object(await response.json()).result?.content?.[0]?.text
}

test('without sessions of the protocol a process belongs to a session of plat, which only the gateway names', async () => {
  const counts = [await callModern('p', 'count'), await callModern('p', 'count'), await callModern('q', 'count')]
  assert.deepEqual(counts, ['1', '2', '1'])
})

test('the environment has what is declared and nothing of plat', async () => {
  const one = await client('own', 'e', 'legacy')
  const names: string[] = JSON.parse(await call(one, 'env'))
  const known = ['HOME', 'KEY', 'LANG', 'PATH', 'PWD', '__CF_USER_TEXT_ENCODING']
  assert.deepEqual(
    names.filter((name) => !known.includes(name)),
    [],
  )
  assert.equal(await call(one, 'env', { name: 'KEY' }), '"hunter2-hunter2"')
  assert.equal(await call(one, 'cwd'), dir)
  const rendered = await readFile(join(up.home.rendered, 'upstreams.json'), 'utf8')
  assert.ok(!rendered.includes('hunter2') && !rendered.includes(CHILD), 'the gateway learns neither')
  await one.close()
})

test('server-everything answers both generations of the SDK', async () => {
  const one = await client('everything', 'f')
  assert.ok((await one.listTools()).tools.some(({ name }) => name === 'echo'))
  assert.match(await call(one, 'echo', { message: 'hi' }), /hi/)
  const progress: number[] = []
  await one.callTool(
    { name: 'trigger-long-running-operation', arguments: { duration: 0.1, steps: 2 } },
    { onprogress: ({ progress: step }) => void progress.push(step) },
  )
  assert.deepEqual(progress, [1, 2])
  await one.close()
  const old = new OldClient({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${await tokenOf('g')}` } }
  const url = new URL(`${up.env.PLAT_GATEWAY_URL}/mcp/everything`)
  await Reflect.apply(old.connect, old, [new OldTransport(url, { requestInit })])
  const { content } = await old.callTool({ name: 'echo', arguments: { message: 'old' } })
  assert.match(JSON.stringify(content), /old/)
  await old.close()
})

test('a failure of the server is a failure of the call, with its reason', async () => {
  const one = await client('own', 'h', 'legacy')
  const broken = await one.callTool({ name: 'broken', arguments: {} })
  assert.equal(denialOf({ result: broken }).message, 'own: it wrote a line that is not a JSON-RPC message')
  const died = denialOf({ result: await one.callTool({ name: 'die', arguments: {} }) })
  assert.deepEqual([died.data.error, died.message], ['upstream_error', 'own: the process ended: exit code 7'])
  await until(() => lines.some((line) => /^server default\/own ended: exit code 7/.test(line)), 'the line')
  await until(
    async () => denialIn({ result: await one.callTool({ name: 'count', arguments: {} }) }) === null,
    'the restart',
  )
  await one.close()
})

test('plat status shows the servers that plat up runs', async () => {
  const printed = await new Promise<string>((resolve) =>
    execFile(process.execPath, [PLAT, 'status', '-dir', dir], (_, out, err) => resolve(out + err)),
  )
  assert.match(printed, /server default\/own +\d+ process(?:es)?, .*failed 1 time, last: exit code 7/)
})

test('neither a host nor a missing bridge leads anywhere', async () => {
  await assert.rejects(client('sly', 'i', 'legacy'), /cannot be resolved/)
})

test('edits are in force without a restart, and what cannot start says why', async () => {
  const one = await client('shared', 'j', 'legacy')
  await server('shared', { stdio: { ...child, perSession: false, env: [{ name: 'MODE', value: 'new' }] } })
  await until(async () => (await call(one, 'env', { name: 'MODE' })) === '"new"', 'the edit')
  await rm(join(dir, '.plat/secrets/default/child/key'))
  const missing = 'mcpservers/default/own.yaml:1: spec.stdio.env[0].valueFrom.secretKeyRef: no Secret default/child/key'
  await until(async () => (await up.problems()).warnings.some((line) => line.startsWith(missing)), 'the warning')
  await until(async () => {
    const failed = await client('own', 'k', 'legacy').then(() => '', String)
    return failed.includes('own: stdio.env: no Secret child/key for KEY')
  }, 'the reason')
  await one.close()
})
