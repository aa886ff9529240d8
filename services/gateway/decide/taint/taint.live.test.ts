import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { wholeLines } from '@plat/testkit/ledger'
import { denialOf } from '@plat/testkit/mcp/denial'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'

const issuer = testIssuer()
let dir: string
let upstream: ScriptedUpstream
let gateway: GatewayProcess

/** Tools of the trusted server `notes`: labels come from these alone. */
const toolLabels = {
  read: { taints: ['secret'] },
  'read_*': { taints: ['private'] },
  fails: { clearTaints: ['*'] },
  wash: { clearTaints: ['secret'] },
  'wash-all': { clearTaints: ['*'] },
  send: { sinks: ['mail'] },
}

const rules = [
  { name: 'all', action: 'allow' },
  {
    name: 'stop',
    action: 'deny',
    match: { taints: ['secret', 'priv*'], sinks: ['*'] },
    reason: 'nothing secret leaves',
  },
  { name: 'careful', action: 'deny', when: "'untrusted-input' in taints", match: { tools: ['delete'] } },
]

async function start(): Promise<GatewayProcess> {
  const plain = { url: upstream.url, namespaces: [], implicit: false, dataClass: 'internal', auth: { type: 'none' } }
  const servers = {
    'default/notes': { ...plain, trust: 'trusted', toolLabels },
    'default/web': { ...plain, trust: 'untrusted' },
  }
  const files = { upstreamsFile: path.join(dir, 'upstreams.json'), policyFile: path.join(dir, 'policies.json') }
  await writeFile(files.upstreamsFile, JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  await writeFile(files.policyFile, policiesFile([testPolicy({ rules })]))
  const stores = { taintStorePath: path.join(dir, 'taints.jsonl'), auditPath: path.join(dir, 'audit.jsonl') }
  return startGatewayProcess({ servers: {}, issuer, config: { ...files, ...stores } })
}

const TOOLS = [...Object.keys(toolLabels), 'delete', 'look'].map((name) => ({ name, inputSchema: { type: 'object' } }))

before(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  upstream = await startScriptedUpstream()
  upstream.answers((request, response) => {
    const { id, method, params } = JSON.parse(request.body)
    if (params?.name === 'dies') return void response.destroy()
    const answer = (result: object) => JSON.stringify({ jsonrpc: '2.0', id, result })
    if (params?.name === 'read_cut') {
      const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'half of it' } }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(note)}\n\n`)
      return void setImmediate(() => response.destroy())
    }
    const result = { content: [{ type: 'text', text: 'done' }], ...(params?.name === 'fails' && { isError: true }) }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(answer(method === 'tools/list' ? { tools: TOOLS } : result))
  })
  gateway = await start()
})

after(async () => {
  await upstream.close()
  await gateway.close()
  await rm(dir, { recursive: true })
})

function tokenOf(session: string, change: object = {}): string {
  const sub = `spiffe://plat.local/ns/default/agent/assistant/session/${session}`
  return issuer.token({ scope: 'tools:notes tools:web', sub, plat_session: session, ...change })
}

async function post(token: string, server: string, method: string, params: object): Promise<string> {
  const response = await fetch(`${gateway.url}/mcp/${server}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return response.text()
}

/** Returns null if the call passed, else the error code. */
async function call(token: string, tool: string, server = 'notes'): Promise<string | null> {
  const text = await post(token, server, 'tools/call', { name: tool, arguments: {} })
  return /"error":"(\w+)"/.exec(text)?.[1] ?? null
}

async function listed(token: string): Promise<string[]> {
  const { result } = JSON.parse(await post(token, 'notes', 'tools/list', {}))
  return result.tools.map((tool: { name: string }) => tool.name)
}

const tools = TOOLS.map(({ name }) => name)

async function records(session: string): Promise<Record<string, unknown>[]> {
  const lines = wholeLines(path.join(dir, 'audit.jsonl'))
  return lines.map((line) => JSON.parse(line).rec).filter((rec) => rec.session === session)
}

test('a label keeps its session, and no other, from calling and listing a sink', async () => {
  // Shows D2.server.toolLabels.taints, D2.server.toolLabels.sinks.
  const [one, other] = [tokenOf('one'), tokenOf('other')]
  assert.equal(await call(one, 'send'), null)
  assert.deepEqual(await listed(one), tools)
  assert.equal(await call(one, 'read'), null)
  const { code, data } = denialOf(JSON.parse(await post(one, 'notes', 'tools/call', { name: 'send', arguments: {} })))
  assert.deepEqual([code, data.error, data.rule], [403, 'tainted_sink', 'stop'])
  assert.deepEqual(
    await listed(one),
    tools.filter((name) => name !== 'send'),
  )
  assert.equal(await call(one, 'look'), null)
  assert.equal(await call(other, 'send'), null)
  const recordOf = async (kind: string, tool: string) =>
    (await records('one')).find((rec) => rec.kind === kind && rec.tool === tool)
  await until(async () => (await recordOf('decision', 'send')) !== undefined, 'the record of the refusal')
  const outcome = await recordOf('outcome', 'read')
  assert.deepEqual([outcome?.taintsAdded, outcome?.taintsCleared], [['secret'], undefined])
  const denied = await recordOf('decision', 'send')
  assert.deepEqual([denied?.code, Object(denied?.facts).taints], ['tainted_sink', ['secret']])
})

test('a tool clears its labels only after it has succeeded', async () => {
  // Shows D2.server.toolLabels.clearTaints, D2.server.toolLabels.clearTaints.all.
  const token = tokenOf('washed')
  assert.equal(await call(token, 'read'), null)
  assert.equal(await call(token, 'read_it'), null)
  assert.equal(await call(token, 'fails'), null)
  assert.equal(await call(token, 'dies'), 'upstream_error')
  const cleared = async () => (await records('washed')).flatMap((rec) => rec.taintsCleared ?? [])
  assert.equal(await call(token, 'wash'), null)
  await until(async () => (await cleared()).length > 0, 'the first label to go')
  assert.equal(await call(token, 'send'), 'tainted_sink')
  assert.equal(await call(token, 'wash-all'), null)
  await until(async () => (await call(token, 'send')) === null, 'a clean session')
  assert.deepEqual(await cleared(), ['secret', 'private'])
})

test('a truncated response taints its session, a missing one does not', async () => {
  const token = tokenOf('cut')
  assert.equal(await call(token, 'dies'), 'upstream_error')
  assert.equal(await call(token, 'send'), null)
  await call(token, 'read_cut').catch(() => null)
  assert.equal(await call(token, 'send'), 'tainted_sink')
})

test('every response of an untrusted server is labelled, and expressions can match the label', async () => {
  // Shows D2.server.trust.
  const token = tokenOf('surfer')
  assert.equal(await call(token, 'delete'), null)
  assert.equal(await call(token, 'search', 'web'), null)
  assert.equal(await call(token, 'delete'), 'policy_denied')
})

test('a fork has the labels of its parent from its first call', async () => {
  const token = tokenOf('fork', { plat_parent_session: 'p', plat_fork_root: 'p', plat_inherited_taints: 'secret' })
  assert.equal(await call(token, 'send'), 'tainted_sink')
  assert.equal(await call(token, 'wash'), null)
  await until(async () => (await call(token, 'send')) === null, 'a clean session')
})

test('each of several concurrent calls gets its response after the label is stored', async () => {
  const token = tokenOf('busy')
  const answers = await Promise.all(Array.from({ length: 20 }, () => call(token, 'read')))
  assert.ok(answers.every((answer) => answer === null))
  assert.equal(await call(token, 'send'), 'tainted_sink')
})

test('metrics count labels and sessions', async () => {
  // Shows D3.metric.plat_gateway_taint_events_total, D3.metric.plat_gateway_tainted_sessions.
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  assert.match(text, /^plat_gateway_taint_events_total\{op="added",label="secret"\} [1-9]/m)
  assert.match(text, /^plat_gateway_taint_events_total\{op="cleared",label="private"\} 1$/m)
  assert.match(text, /^plat_gateway_tainted_sessions [1-9]/m)
})

test('a label is stored before its response is sent and survives a kill at that moment', async () => {
  // Shows D3.dlp.taintStorePath.
  const token = tokenOf('killed')
  assert.equal(await call(token, 'read'), null)
  await gateway.kill()
  gateway = await start()
  assert.equal(await call(token, 'send'), 'tainted_sink')
  assert.equal(await call(tokenOf('one'), 'send'), 'tainted_sink')
  assert.equal(await call(tokenOf('washed'), 'send'), null)
})
