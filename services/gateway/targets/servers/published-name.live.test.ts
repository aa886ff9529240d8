import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../testing/started.ts'

interface SetUp {
  readonly rules?: readonly object[]
  readonly config?: object
}

/** A gateway with the implicit server `assistant-old` of agent `assistant`. */
async function setUp(t: TestContext, { rules = [], config = {} }: SetUp = {}) {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(({ body }, response) => {
    const { id } = JSON.parse(body)
    const answer = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const implicit = { namespaces: [], implicit: true, trust: 'untrusted', dataClass: 'internal', auth: { type: 'none' } }
  const servers = { 'default/assistant-old': { ...implicit, url: upstream.url } }
  const at = (name: string) => join(dir, name)
  await writeFile(at('upstreams.json'), JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  const policy = testPolicy({ agents: ['assistant', 'other'], rules: [...rules, { name: 'all', action: 'allow' }] })
  await writeFile(at('policies.json'), policiesFile([policy]))
  const { gateway, issuer } = await started(t, {
    upstreamsFile: at('upstreams.json'),
    policyFile: at('policies.json'),
    auditPath: at('audit.jsonl'),
    ...config,
  })
  const tokenOf = (agent: string, scope: string) =>
    issuer.token({ scope, plat_agent: agent, sub: `spiffe://plat.local/ns/default/agent/${agent}/session/s1` })
  const send = async (path: string, tool: string, { agent = 'assistant', scope = 'tools:old' } = {}) => {
    const response = await fetch(`${gateway.url}/mcp${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${tokenOf(agent, scope)}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }),
    })
    const text = await response.text()
    return String(denialIn(JSON.parse(text))?.data.error ?? (text.includes('done') ? 'ok' : text))
  }
  const records = async () =>
    (await readFile(at('audit.jsonl'), 'utf8'))
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line).rec)
  const metrics = async () =>
    (await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
  return { send, records, metrics, upstream }
}

const NAMES = ['/old', '/assistant-old'] as const

test('an implicit server is called by its short and by its published name, and is one server in records and metrics', async (t) => {
  // Shows D2.tools.upstreamURL.implicitServer.
  const { send, records, metrics, upstream } = await setUp(t)
  for (const path of NAMES) assert.equal(await send(path, 'read'), 'ok', path)
  assert.equal(await send('', 'old__read'), 'ok')
  assert.equal(await send('', 'assistant-old__read'), 'ok')
  assert.equal(upstream.received.length, 4)
  const outcomes = async () => (await records()).filter(({ kind }) => kind === 'outcome')
  await until(async () => (await outcomes()).length === 4, 'the outcomes')
  assert.deepEqual([...new Set((await outcomes()).map(({ server, tool }) => `${server} ${tool}`))], ['old read'])
  const counted = (await metrics()).split('\n').filter((line) => line.startsWith('plat_gateway_requests_total'))
  assert.deepEqual(counted, ['plat_gateway_requests_total{server="old",method="tools/call",code="200"} 4'])
})

test('the published name is of its agent only, and needs the scope of the short name', async (t) => {
  const { send, upstream } = await setUp(t)
  assert.equal(await send('/assistant-old', 'read', { agent: 'other', scope: 'tools:assistant-old' }), 'unknown_server')
  assert.equal(await send('/assistant-old', 'read', { scope: 'tools:other' }), 'insufficient_scope')
  assert.equal(await send('/assistant-old', 'read', { scope: 'tools:assistant-old' }), 'insufficient_scope')
  assert.equal(upstream.received.length, 0)
})

for (const name of ['old', 'assistant-old', 'assistant-*', 'ol*']) {
  test(`a rule that denies ${name} denies the server under both names`, async (t) => {
    const rules = [{ name: 'no', action: 'deny', match: { servers: [name], tools: ['drop'] } }]
    const { send, upstream } = await setUp(t, { rules })
    for (const path of NAMES) {
      assert.equal(await send(path, 'drop'), 'policy_denied', path)
      assert.equal(await send(path, 'read'), 'ok', path)
    }
    for (const tool of ['old__drop', 'assistant-old__drop']) assert.equal(await send('', tool), 'policy_denied', tool)
    assert.equal(upstream.received.length, 2)
  })
}

test('a result under one name taints the session for both, and a DLP profile of either name applies to both', async (t) => {
  const match = { tools: ['send'], taints: ['untrusted-input'] }
  const { send } = await setUp(t, { rules: [{ name: 'tainted', action: 'deny', match }] })
  assert.equal(await send('/old', 'send'), 'ok')
  assert.equal(await send('/assistant-old', 'read'), 'ok')
  assert.equal(await send('/old', 'send'), 'policy_denied')
  for (const name of ['old', 'assistant-old']) {
    const dlpProfiles = { strict: { requestAction: 'deny', maxScanBytes: 1, onOversize: 'deny' } }
    const strict = await setUp(t, { config: { dlpProfiles, dlp: { servers: { [name]: 'strict' } } } })
    for (const path of NAMES) assert.equal(await strict.send(path, 'read'), 'dlp_denied', `${name} ${path}`)
  }
})
