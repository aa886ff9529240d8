import assert from 'node:assert/strict'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { callTool } from '@plat/testkit/mcp/call'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import type { Gateway } from '../../gateway.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'

async function list({ adminUrl }: Gateway, name: string, token = TOKEN) {
  const response = await fetch(`${adminUrl}/v1/${name}`, { headers: { authorization: `Bearer ${token}` } })
  const body = JSON.parse(await response.text())
  return { status: response.status, items: body.items, ids: (body.items ?? []).map(({ id }: { id: string }) => id) }
}

const DENY = { name: 'no-delete', action: 'deny', match: { tools: ['delete_*'] }, reason: 'nothing is deleted' }
const HOLD = { name: 'hold', action: 'require_approval', match: { tools: ['held'] } }
const READ = { name: 'read', action: 'allow', when: 'args.n < 3', match: { tools: ['read'] } }

const SERVER = {
  ...{ implicit: false, trust: 'trusted', dataClass: 'internal', auth: { type: 'none' } },
  namespaces: [],
} as const

/** A segment of a path by which a service authenticates its caller. */
const KEY = 'aB3dE6gH9jK2mN5pQ8sT1vW4'

/** A gateway with files of two namespaces. */
async function setUp(t: TestContext, more: object = {}) {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const policies = (rules: readonly object[], generation = 1) =>
    policiesFile(
      [
        testPolicy({ name: 'default/assistant', rules }),
        testPolicy({ name: 'bank/teller', namespace: 'bank', agents: ['teller'] }),
      ],
      generation,
    )
  const put = async (name: string, text: string) => {
    await writeFile(join(dir, `${name}.new`), text)
    await rename(join(dir, `${name}.new`), join(dir, name))
  }
  await put('policies.json', policies([DENY, READ]))
  const servers = {
    'default/notes': { ...SERVER, url: upstream.url },
    'default/gone': { ...SERVER, url: 'http://127.0.0.1:9/mcp' },
    'bank/core': { ...SERVER, url: 'http://127.0.0.1:9/mcp?key=secret', namespaces: ['farm'] },
    'bank/teller-own': { ...SERVER, url: `http://127.0.0.1:9/s/${KEY}/own`, implicit: true },
  }
  await put('upstreams.json', JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  const endpoint = { provider: 'openai', upstream: 'http://127.0.0.1:9/v1', model: 'small' }
  const models = { 'bank.teller': { ...endpoint, agent: 'bank/teller' } }
  await put('models.json', JSON.stringify({ version: 1, models }))
  const teller = {
    endpoint: 'http://127.0.0.1:9/a2a?key=secret',
    trust: 'untrusted',
    streaming: true,
    version: '1',
    skills: [],
  }
  await put('agents.json', JSON.stringify({ version: 1, agents: { 'bank/teller': { ...teller, allowedCallers: [] } } }))
  const people = await provider(t)
  const { gateway, issuer } = await started(t, {
    ...more,
    policyFile: join(dir, 'policies.json'),
    upstreamsFile: join(dir, 'upstreams.json'),
    modelsFile: join(dir, 'models.json'),
    models: { shared: { ...endpoint, fallbacks: [{ ...endpoint, model: 'spare' }] } },
    modelRouting: { failureThreshold: 1, cooldownSeconds: 600 },
    a2a: { routesFile: join(dir, 'agents.json') },
    policyReloadSeconds: 1,
    adminAuth: {
      mode: 'both',
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      namespaceRoles: { bank: { viewer: ['bank', 'audit'], auditor: ['audit'] }, farm: { viewer: ['farm'] } },
    },
  })
  const token = issuer.token({ scope: 'tools:notes tools:gone models:shared' })
  const as = (group: string) => people.token({ groups: [group] })
  return { gateway, token, as, policies, put }
}

test('policies are listed as written, and each rule counts the calls that it decided, also after a reload', async (t) => {
  const { gateway, token, policies, put } = await setUp(t)
  const here = { url: gateway.url, token }
  for (const [tool, args] of [
    ['delete_note', {}],
    ['read', { n: 1 }],
    ['read', { n: 2 }],
    ['read', { n: 9 }],
  ] as const)
    await callTool(here, 'notes', tool, args)
  const mine = async () =>
    (await list(gateway, 'policies')).items.find(({ id }: { id: string }) => id === 'default/assistant')
  const policy = await mine()
  assert.partialDeepStrictEqual(policy, {
    ...{ namespace: 'default', agents: ['assistant'], mode: 'enforce', cedar: null, cedarFault: null },
    rules: [
      { ...DENY, hits: 1 },
      { ...READ, hits: 2 },
    ],
    defaultHits: 1,
  })
  await put('policies.json', policies([READ, { name: 'more', action: 'deny' }], 2))
  await until(async () => (await mine()).rules[1].name === 'more', 'the policies are reloaded')
  await callTool(here, 'notes', 'other')
  const { rules, defaultHits } = await mine()
  assert.deepEqual(
    rules.map(({ name, hits }: { name: string; hits: number }) => `${name} ${hits}`),
    ['read 2', 'more 1'],
  )
  assert.equal(defaultHits, 1)
})

test('servers and agents are listed without keys in their addresses, and with who may use them', async (t) => {
  const { gateway } = await setUp(t)
  const { items } = await list(gateway, 'servers')
  const of = new Map(items.map((one: { id: string }) => [one.id, one]))
  assert.partialDeepStrictEqual(of.get('bank/core'), {
    ...{ kind: 'server', namespace: 'bank', sharedWith: ['farm'], url: 'http://127.0.0.1:9/mcp', auth: 'none' },
  })
  assert.partialDeepStrictEqual(of.get('bank/teller-own'), {
    ...{ kind: 'implicit', namespace: 'bank', url: 'http://127.0.0.1:9/s/…/own' },
  })
  assert.partialDeepStrictEqual(of.get('notes'), { kind: 'static', namespace: null })
  const agents = await list(gateway, 'agents')
  assert.partialDeepStrictEqual(agents.items.at(-1), { exposed: { endpoint: 'http://127.0.0.1:9/a2a' } })
  assert.doesNotMatch(JSON.stringify([items, agents.items]), new RegExp(`secret|${KEY}`))
})

test('model routes are listed with the circuits of their endpoints', async (t) => {
  const { gateway, token } = await setUp(t)
  const shared = async () => (await list(gateway, 'models')).items.find(({ id }: { id: string }) => id === 'shared')
  const before = await shared()
  assert.deepEqual(
    before.endpoints.map((one: { model: string; circuit: string; isFallback: boolean }) => [
      one.model,
      one.circuit,
      one.isFallback,
    ]),
    [
      ['small', 'closed', false],
      ['spare', 'closed', true],
    ],
  )
  const response = await fetch(`${gateway.url}/llm/shared/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.arrayBuffer()
  const [first] = (await shared()).endpoints
  assert.deepEqual([first.circuit, first.failures], ['open', 1])
  assert.ok(first.retryInMs > 0 && first.retryInMs <= 600_000)
})

test('a role in one namespace shows what is of that namespace, or open to all, and nothing of others', async (t) => {
  const { gateway, as } = await setUp(t)
  const [bank, farm, audit] = [await as('bank'), await as('farm'), await as('audit')]
  assert.equal((await list(gateway, 'policies', bank)).status, 403)
  assert.deepEqual((await list(gateway, 'policies', audit)).ids, ['bank/teller'])
  const own = (ids: readonly string[]) => ids.filter((id) => id.includes('/'))
  assert.deepEqual(own((await list(gateway, 'servers', bank)).ids), ['bank/teller-own', 'bank/core'])
  const { items } = await list(gateway, 'servers', farm)
  assert.deepEqual(own(items.map(({ id }: { id: string }) => id)), ['bank/core'])
  assert.deepEqual((await list(gateway, 'models', bank)).ids, ['shared', 'bank.teller'])
  assert.deepEqual((await list(gateway, 'models', farm)).ids, ['shared'])
  assert.deepEqual((await list(gateway, 'agents', farm)).ids, [])
  const agents = await list(gateway, 'agents', bank)
  assert.partialDeepStrictEqual(agents.items, [
    { id: 'bank/teller', policies: ['bank/teller'], models: ['bank.teller'], exposed: { streaming: true, skills: [] } },
  ])
  assert.deepEqual((await list(gateway, 'agents')).ids, ['default/assistant', 'bank/teller'])
})

test('calls in progress are counted for those who may see them, and health for those with a role everywhere', async (t) => {
  const { gateway, token, as, policies, put } = await setUp(t)
  await put('policies.json', policies([HOLD], 2))
  await until(async () => {
    const { items } = await list(gateway, 'policies')
    return items.some(({ rules }: { rules: { name: string }[] }) => rules[0]?.name === 'hold')
  }, 'the policies are reloaded')
  const now = async (secret = TOKEN) => {
    const response = await fetch(`${gateway.adminUrl}/v1/now`, { headers: { authorization: `Bearer ${secret}` } })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  assert.deepEqual((await now()).body, {
    ...{ calls: { total: 0, long: 0 }, sessions: 0, agents: [], problems: [], unreachable: [] },
    health: { ledger: true, state: null, sinks: [] },
  })
  const call = callTool({ url: gateway.url, token }, 'notes', 'held')
  await until(async () => (await now()).body.calls.total === 1, 'the call waits')
  assert.partialDeepStrictEqual((await now()).body, { sessions: 1, agents: [{ id: 'default/assistant', calls: 1 }] })
  const { status, body } = await now(await as('bank'))
  assert.deepEqual([status, body.calls.total, body.agents, body.problems], [200, 0, [], null])
  assert.equal(body.health, null)
  await fetch(`${gateway.adminUrl}/v1/revocations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ target: { all: true } }),
  })
  await call
})

test('a sink that fails and a server that cannot be reached are part of the health, each for those who may see it', async (t) => {
  const sink = { name: 'siem', type: 'http', url: 'http://127.0.0.1:9/records', format: 'json', pollIntervalMillis: 5 }
  const { gateway, token, as } = await setUp(t, { auditSinks: [sink] })
  const now = async (secret = TOKEN) => {
    const response = await fetch(`${gateway.adminUrl}/v1/now`, { headers: { authorization: `Bearer ${secret}` } })
    return JSON.parse(await response.text())
  }
  await callTool({ url: gateway.url, token }, 'gone', 'read', { n: 1 })
  await until(async () => (await now()).health.sinks[0].isFailing, 'the failed delivery')
  const { health, unreachable } = await now()
  assert.ok(health.sinks[0].lag > 0)
  assert.deepEqual(unreachable, [{ id: 'default/gone', reason: 'it does not accept connections' }])
  const gone = (await list(gateway, 'servers')).items.find(({ id }: { id: string }) => id === 'default/gone')
  assert.equal(gone.unreachable, 'it does not accept connections')
  const bank = await now(await as('bank'))
  assert.deepEqual([bank.health, bank.unreachable], [null, []])
})
