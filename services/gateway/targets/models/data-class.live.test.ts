import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { type Script, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

const RESULTS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 'read', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'data' }] },
  'resources/read': { contents: [{ uri: 'a:b', text: 'data' }] },
}
const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  choices: [],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
}

/** A server and a model in one. */
const upstreamScript: Script = ({ body }, response) => {
  const { id, method, messages } = JSON.parse(body)
  const text = messages === undefined ? { jsonrpc: '2.0', id, result: RESULTS[method] } : COMPLETION
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(text))
}

const CLASSES = ['public', 'internal', 'confidential', 'restricted']
const ROUTES = ['any', 'public', 'near', 'far', 'both']

async function configured(dir: string, url: string) {
  const server = (dataClass: string) => ({
    ...{ url, namespaces: [], implicit: false, trust: 'trusted', dataClass, auth: { type: 'none' } },
    toolLabels: { wash: { clearTaints: ['*'] } },
  })
  const servers = Object.fromEntries(CLASSES.map((name) => [`default/${name}`, server(name)]))
  const file = async (name: string, content: object) => {
    await writeFile(join(dir, name), JSON.stringify(content))
    return join(dir, name)
  }
  return {
    upstreamsFile: await file('upstreams.json', { version: 1, servers, bindings: {}, agentWeb: {} }),
    sovereigntyPolicyFile: await file('sovereignty.json', {
      dataClassRules: { restricted: { allowedJurisdictions: ['DE'] } },
    }),
    models: {
      any: { upstream: url },
      public: { upstream: url, dataClass: 'public' },
      far: { upstream: url, jurisdiction: 'US' },
      near: { upstream: url, jurisdiction: 'DE' },
      both: { upstream: url, model: 'cloud', fallbacks: [{ upstream: url, model: 'own' }] },
    },
    modelRouting: {
      dataClassModels: { public: ['open', 'cloud', 'own'], internal: ['cloud', 'own'], confidential: ['own'] },
    },
    taintStorePath: join(dir, 'taints.jsonl'),
    auditPath: join(dir, 'audit.jsonl'),
  }
}

async function setUp(t: TestContext) {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(upstreamScript)
  const own = await configured(dir, upstream.url)
  const { gateway, issuer } = await started(t, own)
  const scope = [...ROUTES.map((name) => `models:${name}`), ...CLASSES.map((name) => `tools:${name}`)]
  const post = async (session: string, path: string, body: object, claims: object = {}) => {
    const sub = `spiffe://plat.local/ns/default/agent/assistant/session/${session}`
    const token = issuer.token({ scope: scope.join(' '), sub, plat_session: session, ...claims })
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    }
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return response.text()
  }
  return {
    mcp: (session: string, server: string, method: string, params: object = {}) =>
      post(session, `/mcp/${server}`, { jsonrpc: '2.0', id: 1, method, params }),
    /** Returns `ok`, or the error code. */
    async ask(session: string, route: string, model: string, claims: object = {}) {
      const body = { model, messages: [{ role: 'user', content: 'x' }] }
      const text = await post(session, `/llm/${route}/v1/chat/completions`, body, claims)
      return /"code":"([a-z_]+)"/.exec(text)?.[1] ?? 'ok'
    },
  }
}

const read = { name: 'read', arguments: {} }
const no = 'model_not_allowed'

test('the allowed models of a session depend on the highest class of the data that it received', async (t) => {
  // Shows D3.modelRouting.dataClassModels
  const { mcp, ask } = await setUp(t)
  const results = async (session: string) => [
    await ask(session, 'public', 'open'),
    await ask(session, 'any', 'open'),
    await ask(session, 'any', 'cloud'),
    await ask(session, 'any', 'own'),
    await ask(session, 'near', 'own'),
    await ask(session, 'both', 'x'),
  ]
  const internal = ['ok', no, 'ok', 'ok', 'ok', 'ok']
  for (const name of ['public', 'internal']) {
    await mcp('low', name, 'tools/call', read)
    assert.deepEqual(await results('low'), internal, name)
  }
  await mcp('s1', 'confidential', 'initialize', RESULTS.initialize)
  await mcp('s1', 'confidential', 'tools/list')
  assert.deepEqual(await results('s1'), internal)
  await mcp('s1', 'confidential', 'tools/call', read)
  assert.deepEqual(await results('s1'), [no, no, no, 'ok', 'ok', 'ok'])
  await mcp('s1', 'restricted', 'resources/read', { uri: 'a:b' })
  assert.deepEqual(await results('s1'), [no, no, no, 'ok', 'ok', 'ok'])
  assert.deepEqual(await results('other'), internal)
})

test('forks and delegates of a session with data of a class are restricted too, until a tool clears the label', async (t) => {
  const { mcp, ask } = await setUp(t)
  const fork = { plat_inherited_taints: 'data-class:confidential' }
  assert.equal(await ask('fork', 'any', 'cloud', fork), no)
  await mcp('parent', 'confidential', 'tools/call', read)
  const parent = 'spiffe://plat.local/ns/default/agent/assistant/session/parent'
  const delegated = { act: { sub: parent, act: { sub: 'user:ada' } }, plat_delegator_jti: 'j' }
  assert.equal(await ask('delegate', 'any', 'cloud', delegated), no)
  assert.equal(await ask('parent', 'any', 'cloud'), no)
  await mcp('parent', 'internal', 'tools/call', { name: 'wash', arguments: {} })
  await until(async () => (await ask('parent', 'any', 'cloud')) === 'ok', 'the label to be cleared')
  assert.equal(await ask('delegate', 'any', 'cloud', delegated), 'ok')
})

test('data of a class goes only to models in the jurisdictions of its rule', async (t) => {
  const { mcp, ask } = await setUp(t)
  const results = async () => [await ask('s1', 'near', 'own'), await ask('s1', 'far', 'own')]
  await mcp('s1', 'confidential', 'tools/call', read)
  assert.deepEqual(await results(), ['ok', 'ok'])
  await mcp('s1', 'restricted', 'tools/call', read)
  assert.deepEqual(await results(), ['ok', 'residency_denied'])
})
