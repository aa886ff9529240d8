import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../testing/started.ts'

const SCOPE = 'tools:notes models:open agents:helper'
const PUBLIC = 'https://gateway.example'
const HOSTILE = ['//', '/%2f', '/./', '/..//', '%2f', '/%2e/']

const TOOL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }
const MESSAGE = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
const REQUESTS: Readonly<Record<string, object>> = {
  '/mcp/notes': TOOL,
  '/a2a/default/helper': { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: MESSAGE } },
  '/llm/open/v1/chat/completions': { model: 'small-1', messages: [{ role: 'user', content: 'hi' }] },
}

/** A gateway with one server, one agent and one model. */
async function setUp(t: TestContext) {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  upstream.answers((_, response) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } })
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })
  const model = await startModelServer()
  const agent = await startTestAgent()
  t.after(() => Promise.all([upstream.close(), model.close(), agent.close()]))
  const helper = {
    endpoint: agent.url,
    allowedCallers: [],
    skills: [],
    streaming: true,
    trust: 'trusted',
    version: '1',
  }
  await writeFile(join(dir, 'agents.json'), JSON.stringify({ version: 1, agents: { 'default/helper': helper } }))
  const all = [{ name: 'all', action: 'allow' }]
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules: all })]))
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(t, {
    auditPath,
    policyFile: join(dir, 'policies.json'),
    upstreams: { notes: upstream.url },
    models: { open: { upstream: model.url } },
    a2a: { routesFile: join(dir, 'agents.json') },
    dpop: { publicURL: PUBLIC },
  })
  const token = issuer.token({ scope: SCOPE })
  const { port } = new URL(gateway.url)
  /** Resolves to the status. Unlike `fetch` it sends the path as it is, and follows no redirect. */
  const post = (path: string, body: object, credentials: Record<string, string> = {}): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'a2a-version': '1.0',
        ...credentials,
      }
      const sent = request({ port, host: '127.0.0.1', method: 'POST', path, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject).end(JSON.stringify(body))
    })
  const admin = (path: string) => fetch(gateway.url + path, { headers: { authorization: `Bearer ${TOKEN}` } })
  const reached = () => upstream.received.length + agent.reached.length
  return { auditPath, issuer, post, admin, reached }
}

test('a trailing slash is the same endpoint, decision, record and metric', async (t) => {
  const { auditPath, post, admin } = await setUp(t)
  for (const [path, body] of Object.entries(REQUESTS))
    for (const form of ['', '/', '/?x=1']) assert.equal(await post(path + form, body), 200, path + form)
  let outcomes: readonly string[] = []
  await until(async () => {
    const lines = (await readFile(auditPath, 'utf8')).trim().split('\n')
    outcomes = lines
      .map((line) => JSON.parse(line).rec)
      .filter(({ kind }) => kind === 'outcome')
      .map(({ server, op, method, result }) => JSON.stringify([server, op, method, result]))
    return outcomes.length === 9
  }, 'the records of the calls')
  const counts = [...new Set(outcomes)].map((name) => outcomes.filter((one) => one === name).length)
  assert.deepEqual(counts, [3, 3, 3])
  assert.deepEqual(await (await admin('/v1/approvals/')).json(), await (await admin('/v1/approvals')).json())
  const metrics = await (await admin('/metrics/')).text()
  for (const series of ['server="notes",method="tools/call"', 'server="a2a/default/helper",method="SendMessage"'])
    assert.match(metrics, new RegExp(`plat_gateway_requests_total\\{${series},code="200"\\} 3`))
})

test('other spellings of a path stay refused, and a proof may name either form', async (t) => {
  const { issuer, post, reached } = await setUp(t)
  for (const [path, body] of Object.entries(REQUESTS))
    for (const end of HOSTILE) {
      const status = await post(path + end, body)
      assert.ok(status >= 400 && status < 500, `${path}${end}: ${status}`)
    }
  assert.equal(reached(), 0)
  const prover = testProver()
  const bound = issuer.token({ scope: SCOPE, cnf: { jkt: prover.jkt } })
  for (const [htu, path] of [
    ['/mcp/notes/', '/mcp/notes/'],
    ['/mcp/notes', '/mcp/notes/'],
    ['/mcp/notes/', '/mcp/notes'],
  ] as const) {
    const proof = { authorization: `DPoP ${bound}`, dpop: prover.proof(PUBLIC + htu, bound) }
    assert.equal(await post(path, TOOL, proof), 200, `${htu} ${path}`)
  }
})
