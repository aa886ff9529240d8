import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { startFixture } from '@plat/testkit/mcp/fixture'

let replicas: readonly GatewayProcess[] = []
const closers: (() => unknown)[] = []

before(async () => {
  const fixtures = await Promise.all([startFixture(), startFixture('legacy'), startFixture('modern')])
  for (const fixture of fixtures) closers.push(() => fixture.close())
  const [dual = '', legacy = '', modern = ''] = fixtures.map((fixture) => fixture.url)
  const issuer = testIssuer()
  const env = { PLAT_SEAL_KEY: randomBytes(32).toString('base64url') }
  const setup = { servers: { dual, legacy, modern }, issuer, env }
  replicas = await Promise.all([startGatewayProcess(setup), startGatewayProcess(setup)])
  for (const replica of replicas) closers.push(() => replica.close())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

/** Sends each request to the next replica, as a balancer would. */
function inTurn(path: string) {
  const used = [0, 0]
  let turn = 0
  const next = (_: string | URL, init?: RequestInit): Promise<Response> => {
    const at = turn++ % replicas.length
    used[at] = (used[at] ?? 0) + 1
    const { url = '', token = '' } = replicas[at] ?? {}
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(`${url}/mcp${path}`, { ...init, headers })
  }
  return { fetch: next, used }
}

const address = new URL('http://gateway.example/mcp/fixture')
const capabilities = { sampling: {}, elicitation: {}, roots: {} }
const elicited = { action: 'accept' as const, content: { username: 'alice', email: 'a@example.org', name: 'alice' } }
const sampled = { role: 'assistant' as const, model: 'none', content: { type: 'text' as const, text: 'a thought' } }

/** An official client with a person and a model behind it. */
interface Connected {
  call(name: string): Promise<unknown>
  list(): Promise<readonly string[]>
  close(): Promise<void>
}

type Connect = (send: ReturnType<typeof inTurn>['fetch']) => Promise<Connected>

function current(mode: 'legacy' | 'auto' | { pin: '2026-07-28' }): Connect {
  return async (send) => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode }, capabilities })
    client.setRequestHandler('elicitation/create', () => elicited)
    client.setRequestHandler('sampling/createMessage', () => sampled)
    client.setRequestHandler('roots/list', () => ({ roots: [] }))
    await client.connect(new StreamableHTTPClientTransport(address, { fetch: send }))
    return {
      call: async (name) => (await client.callTool({ name, arguments: {} })).content,
      list: async () => (await client.listTools()).tools.map((tool) => tool.name),
      close: () => client.close(),
    }
  }
}

const old: Connect = async (send) => {
  const client = new OldClient({ name: 'test', version: '1' }, { capabilities })
  client.setRequestHandler(ElicitRequestSchema, () => elicited)
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled)
  // The old SDK's own types disagree about optional members; connecting by name keeps the rest checked.
  await Reflect.apply(client.connect, client, [new OldTransport(address, { fetch: send })])
  return {
    call: async (name) => (await client.callTool({ name, arguments: {} })).content,
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    close: () => client.close(),
  }
}

const asking = ['test_elicitation', 'test_sampling', 'test_reconnection']
const rounds = ['test_input_required_result_multiple_inputs', 'test_input_required_result_multi_round']
const clients: readonly [string, Connect, server: string, tools: readonly string[]][] = [
  ['the official client, legacy', current('legacy'), 'dual', asking],
  ['the official client, legacy', current('legacy'), 'legacy', asking],
  ['the official client, auto', current('auto'), 'dual', rounds],
  ['the official client, auto', current('auto'), 'legacy', asking],
  ['the official client, auto', current('auto'), 'modern', rounds],
  ['the official client, pinned to 2026-07-28', current({ pin: '2026-07-28' }), 'dual', rounds],
  ['the official client, pinned to 2026-07-28', current({ pin: '2026-07-28' }), 'modern', rounds],
  ['the SDK of version 1', old, 'dual', asking],
  ['the SDK of version 1', old, 'legacy', asking],
]

for (const [who, connect, server, tools] of clients) {
  test(`two gateways serve one session of ${who} at a ${server} server in turn, for every method`, async () => {
    // Shows D3.endpoint.mcp.
    const { fetch: send, used } = inTurn(`/${server}`)
    const client = await connect(send)
    const names = await client.list()
    for (const tool of tools) {
      assert.ok(names.includes(tool), tool)
      const content = JSON.stringify(await client.call(tool))
      assert.match(content, /alice|a thought|closed and taken up|Both steps are done|Thank you for all/, tool)
    }
    await client.close()
    assert.ok(
      used.every((count) => count > 1),
      used.join(),
    )
  })
}

const shared: readonly [string, Connect, servers: readonly string[]][] = [
  ['the official client, legacy', current('legacy'), ['dual', 'legacy']],
  ['the official client, auto', current('auto'), ['dual', 'legacy']],
  ['the SDK of version 1', old, ['dual', 'legacy']],
]

for (const [who, connect, servers] of shared) {
  test(`two gateways serve one session of ${who} at the address of all servers in turn`, async () => {
    const { fetch: send, used } = inTurn('')
    const client = await connect(send)
    const names = await client.list()
    for (const name of servers.flatMap((server) => asking.map((tool) => `${server}__${tool}`))) {
      assert.ok(names.includes(name), name)
      assert.match(JSON.stringify(await client.call(name)), /alice|a thought|closed and taken up/, name)
    }
    assert.ok(!names.some((name) => name.startsWith('modern__')), 'one server has no sessions')
    await client.close()
    assert.ok(
      used.every((count) => count > 1),
      used.join(),
    )
  })
}

test('a request of a server is recorded on its replica, and the response on another replica names that call', async () => {
  const client = await current('legacy')(inTurn('/dual').fetch)
  await client.call('test_elicitation')
  await client.close()
  let [calls, parents] = await asksAndAnswers()
  // Outcomes are appended, not awaited: the last may follow its answer.
  while (parents.length < calls.length) [calls, parents] = await asksAndAnswers()
  assert.ok(calls.length > 0)
  assert.deepEqual(parents.sort(), calls.sort())
})

/** Calls with requests of a server before 2026-07-28, and parents named by the responses. */
async function asksAndAnswers(): Promise<[calls: string[], parents: string[]]> {
  const calls: string[] = []
  const parents: string[] = []
  for (const replica of replicas) {
    for (const line of await replica.ledger()) {
      const { rec } = JSON.parse(line)
      const tool = String(rec.tool)
      if (rec.kind === 'message' && asking.includes(tool)) calls.push(rec.call)
      if (rec.kind === 'outcome' && rec.op === 'mcp.answer') parents.push(rec.parent)
    }
  }
  return [calls, parents]
}
