import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { started } from '../../testing/started.ts'

/** Longer than the minimum timeout of a server, in milliseconds. */
const SLOW_MS = 1500

/** A gateway with these servers of the registry, with defaults from the first one, and policy rules of one agent. */
async function setUp(t: TestContext, servers: Readonly<Record<string, object>>, own: SetUp = {}) {
  const { rules = [], sovereignty } = own
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id, params } = JSON.parse(request.body)
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })
    const send = () => response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
    if (params?.name === 'slow') setTimeout(send, SLOW_MS)
    else send()
  })
  const first = {
    ...{ url: upstream.url, namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal' },
    auth: { type: 'none' },
  }
  const entries = Object.entries(servers).map(([name, entry]) => [`default/${name}`, { ...first, ...entry }])
  const file = (name: string) => join(dir, name)
  const registry = { version: 1, servers: Object.fromEntries(entries), bindings: {}, agentWeb: {} }
  await writeFile(file('upstreams.json'), JSON.stringify(registry))
  await writeFile(
    file('policies.json'),
    policiesFile([testPolicy({ rules: [{ name: 'all', action: 'allow' }, ...rules] })]),
  )
  if (sovereignty !== undefined) await writeFile(file('sovereignty.json'), JSON.stringify(sovereignty))
  const { gateway, issuer } = await started(t, {
    upstreamsFile: file('upstreams.json'),
    policyFile: file('policies.json'),
    ...(sovereignty !== undefined && { sovereigntyPolicyFile: file('sovereignty.json') }),
  })
  const scope = Object.keys(servers)
    .map((name) => `tools:${name}`)
    .join(' ')
  /** Makes a call; returns `ok` or the error code. */
  return async (server: string, { tool = 'read', session = 's1' }: { tool?: string; session?: string } = {}) => {
    const response = await fetch(`${gateway.url}/mcp/${server}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({
          scope,
          plat_session: session,
          sub: `spiffe://plat.local/ns/default/agent/assistant/session/${session}`,
        })}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }),
    })
    return String(denialIn(JSON.parse(await response.text()))?.data.error ?? 'ok')
  }
}

interface SetUp {
  readonly rules?: readonly object[]
  readonly sovereignty?: object
}

test('results of an untrusted server taint the session, and those of a trusted one do not', async (t) => {
  // Shows D3.registry.trust, D2.server.trust.
  const rules = [{ name: 'stop', action: 'deny', match: { tools: ['send'], taints: ['untrusted-input'] } }]
  const ask = await setUp(t, { mine: { trust: 'trusted' }, theirs: { trust: 'untrusted' } }, { rules })
  assert.equal(await ask('mine'), 'ok')
  assert.equal(await ask('mine', { tool: 'send' }), 'ok')
  assert.equal(await ask('theirs'), 'ok')
  assert.equal(await ask('mine', { tool: 'send' }), 'policy_denied')
  assert.equal(await ask('mine', { tool: 'send', session: 's2' }), 'ok')
})

test('a rule matches the class of a server’s data', async (t) => {
  // Shows D3.registry.dataClass, D2.server.dataClass.
  const classes = ['public', 'internal', 'confidential', 'restricted']
  const rules = [{ name: 'stop', action: 'deny', match: { dataClasses: ['confidential', 'restricted'] } }]
  const ask = await setUp(t, Object.fromEntries(classes.map((dataClass) => [dataClass, { dataClass }])), { rules })
  const answers = await Promise.all(classes.map((name) => ask(name, { session: name })))
  assert.deepEqual(answers, ['ok', 'ok', 'policy_denied', 'policy_denied'])
})

test('a server is called only in an allowed jurisdiction', async (t) => {
  // Shows D3.registry.jurisdiction.
  const servers = { near: { jurisdiction: 'DE' }, far: { jurisdiction: 'US' }, nowhere: {} }
  const sovereignty = { allowedJurisdictions: ['EU'], requireJurisdiction: true }
  const ask = await setUp(t, servers, { sovereignty })
  const answers = await Promise.all(Object.keys(servers).map((name) => ask(name)))
  assert.deepEqual(answers, ['ok', 'residency_denied', 'residency_denied'])
})

test('response headers time out after the timeoutSeconds of the server', async (t) => {
  // Shows D3.registry.timeoutSeconds, D2.server.timeoutSeconds.
  const ask = await setUp(t, { hasty: { timeoutSeconds: 1 }, patient: { timeoutSeconds: 30 }, unset: {} })
  const answers = await Promise.all(['hasty', 'patient', 'unset'].map((name) => ask(name, { tool: 'slow' })))
  assert.deepEqual(answers, ['upstream_timeout', 'ok', 'ok'])
  assert.equal(await ask('hasty'), 'ok')
})
