import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isObject } from '@plat/core'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { TOKEN } from '../../../testing/started.ts'
import { connectClient, type SharedFixture, startShared } from '../testing/shared.ts'

const closers: (() => unknown)[] = []
const ends = { after: (end: () => unknown) => void closers.push(end) }
let odd: ScriptedUpstream
let slow: ScriptedUpstream
let gateway: SharedFixture

const LONG = 'a_tool_whose_name_alone_is_nearly_as_long_as_models_accept_it_'

const rules = [
  { name: 'hidden', action: 'deny', match: { servers: ['notes'], tools: ['test_image_content'] } },
  { name: 'waits', action: 'require_approval', match: { servers: ['files'], tools: ['test_simple_text'] } },
  { name: 'all', action: 'allow' },
]

/** The server that never responds does not delay the end of the test. */
const quick = { approvalAnswerAfterSeconds: 1, shutdownTimeoutSeconds: 1 }

before(async () => {
  const fixtures = await Promise.all([startFixture(), startFixture()])
  odd = await startScriptedUpstream()
  slow = await startScriptedUpstream()
  for (const one of [...fixtures, odd, slow]) closers.push(() => one.close())
  const [notes = '', files = ''] = fixtures.map(({ url }) => url)
  const servers = { notes, files, odd: odd.url, slow: slow.url, down: 'http://127.0.0.1:1/mcp', a__b: odd.url }
  gateway = await startShared(ends, servers, { rules, mcpListSeconds: 1, ...quick })
  const tools = [
    { name: 'notes__test_simple_text', big: 12345678901234567890n },
    { name: `${LONG}1` },
    { name: `${LONG}2` },
    { name: 'dup' },
  ].map(({ name, big }) => `{"name":"${name}","n":${big ?? 1},"inputSchema":{"type":"object"}}`)
  odd.answers((request, response) => {
    const { id, method, params } = JSON.parse(request.body)
    const result =
      method === 'tools/list'
        ? params.cursor === undefined
          ? `{"tools":[${tools.slice(0, 2)}],"nextCursor":"second"}`
          : `{"tools":[${tools.slice(2)}],"cursor":${JSON.stringify(params.cursor)}}`
        : `{"content":[{"type":"text","text":${JSON.stringify(params?.name ?? method)}}]}`
    return json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)(request, response)
  })
  slow.answers(() => {})
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

async function resultOf(message: object, headers?: Record<string, string>): Promise<Record<string, unknown>> {
  const response = await gateway.send(message, headers)
  const { result } = JSON.parse(await response.text())
  assert.ok(isObject(result))
  return result
}

const list = (cursor?: unknown) => ({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } })
const bearer = (servers: readonly string[], session = 's1') => ({
  authorization: `Bearer ${gateway.token(session, servers)}`,
})

function namesIn(result: Readonly<Record<string, unknown>>): string[] {
  assert.ok(Array.isArray(result.tools))
  return result.tools.map(({ name }: { name: string }) => name)
}

test('a list has every server that responds, and says which are missing and why', async () => {
  // Shows D3.mcp.mcpListSeconds.
  const client = await connectClient(gateway, 'legacy', gateway.token('s1', ['notes', 'files', 'slow', 'down']))
  const { tools, _meta } = await client.listTools()
  await client.close()
  const names = tools.map(({ name }) => name)
  assert.ok(names.includes('notes__test_simple_text') && names.includes('files__test_image_content'))
  assert.ok(!names.includes('notes__test_image_content'), 'a denied tool is hidden')
  const left = _meta?.['plat.dev/left-out']
  assert.ok(Array.isArray(left))
  assert.deepEqual(
    left.map(({ server, error }) => [server, error]),
    [
      ['down', 'upstream_error'],
      ['slow', 'upstream_timeout'],
    ],
  )
  assert.match(left[1].reason, /^slow did not respond within 1000 ms/)
  const metrics = await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
  assert.match(await metrics.text(), /plat_gateway_mcp_left_out_total\{code="upstream_timeout"\} 1/)
})

test('a server cannot list or receive what belongs to another one', async () => {
  const headers = bearer(['odd', 'notes'])
  const names = namesIn(await resultOf(list(), headers))
  assert.ok(names.includes('odd__notes__test_simple_text'))
  assert.equal(names.filter((name) => name.startsWith('notes__')).length, 0, 'the fixture requires a session')
  const name = 'odd__notes__test_simple_text'
  const { content } = await resultOf({ method: 'tools/call', params: { name, arguments: {} } }, headers)
  assert.deepEqual(content, [{ type: 'text', text: 'notes__test_simple_text' }])
})

test('pages follow by a cursor that only its caller can use, for the same list; entries keep their bytes', async () => {
  const headers = bearer(['odd'])
  const response = await gateway.send(list(), headers)
  const text = await response.text()
  assert.match(text, /"n":12345678901234567890/)
  const { result } = JSON.parse(text)
  const second = await resultOf(list(result.nextCursor), headers)
  assert.deepEqual([namesIn(second).length, second.nextCursor], [2, undefined])
  assert.match(odd.received.at(-1)?.body ?? '', /"cursor":"second"/)
  const refusals = await Promise.all([
    gateway.send(list(`${result.nextCursor}x`), headers),
    gateway.send({ method: 'prompts/list', params: { cursor: result.nextCursor } }, headers),
    gateway.send(list(result.nextCursor), bearer(['odd'], 's2')),
  ])
  for (const refusal of refusals) {
    const { error } = JSON.parse(await refusal.text())
    assert.equal(error.data.error, 'not_found')
  }
})

test('a name that is too long is shortened, and calls find its tool with and without a list before', async () => {
  const listed = bearer(['odd'], 'first')
  const name = namesIn(await resultOf(list(), listed))[1] ?? ''
  assert.equal(name.length, 64)
  for (const headers of [listed, bearer(['odd'], 'second')]) {
    const { content } = await resultOf({ method: 'tools/call', params: { name, arguments: {} } }, headers)
    assert.deepEqual(content, [{ type: 'text', text: `${LONG}1` }])
  }
})

test('a tool cannot take the shortened name of a tool on another page', async (t) => {
  const twice = await startScriptedUpstream()
  t.after(() => twice.close())
  let taking = ''
  twice.answers((request, response) => {
    const { id, method, params } = JSON.parse(request.body)
    const page = params?.cursor === undefined ? { tools: [`${LONG}1`], nextCursor: 'second' } : { tools: [taking] }
    const tools = page.tools.map((name) => ({ name, inputSchema: { type: 'object' } }))
    const result = method === 'tools/list' ? { ...page, tools } : { content: [{ type: 'text', text: params.name }] }
    return json(JSON.stringify({ jsonrpc: '2.0', id, result }))(request, response)
  })
  const { send } = await startShared(t, { twice: twice.url })
  const ask = async (message: object) => JSON.parse(await (await send(message)).text())
  const first = (await ask(list())).result
  const name = namesIn(first)[0] ?? assert.fail()
  taking = name.slice('twice__'.length)
  const call = async () => JSON.stringify(await ask({ method: 'tools/call', params: { name, arguments: {} } }))
  assert.match(await call(), new RegExp(`"text":"${LONG}1"`))
  assert.deepEqual(namesIn((await ask(list(first.nextCursor))).result), [name])
  assert.match(await call(), /twice has two tools of this name/)
})

test('a server whose name has the separator gets another prefix, so that no name has two meanings', async () => {
  const headers = bearer(['a__b'])
  const [first = ''] = namesIn(await resultOf(list(), headers))
  assert.match(first, /^ab[0-9a-f]{8}__notes__test_simple_text$/)
  const { content } = await resultOf({ method: 'tools/call', params: { name: first, arguments: {} } }, headers)
  assert.deepEqual(content, [{ type: 'text', text: 'notes__test_simple_text' }])
  await until(() => gateway.records().some(({ server }) => server === 'a__b'), 'the record')
})

test('a call leaves the records of its server and tool, a list one for each request to a server', async () => {
  const session = `s-${Date.now()}`
  const headers = bearer(['odd', 'a__b'], session)
  const before = odd.received.length
  await resultOf(list(), headers)
  await resultOf({ method: 'tools/call', params: { name: 'odd__dup', arguments: {} } }, headers)
  const mine = () => gateway.records().filter((record) => record.session === session && record.kind === 'outcome')
  await until(() => mine().length === 3, 'three outcomes')
  assert.equal(odd.received.length - before, 3)
  const seen = mine()
    .map(({ server, tool, method }) => [server, tool, method].join(' ').trim())
    .sort()
  assert.deepEqual(seen, ['a__b  tools/list', 'odd  tools/list', 'odd dup tools/call'])
})

test('a refused call is a result that names the tool as the model wrote it', async () => {
  for (const [name, error, text] of [
    ['notes__test_image_content', 'policy_denied', /^notes__test_image_content was not run/],
    ['test_image_content', 'unknown_tool', /^test_image_content was not run: names of tools at \/mcp begin/],
    ['gone__tool', 'insufficient_scope', /./],
  ] as const) {
    const response = await gateway.send({ method: 'tools/call', params: { name, arguments: {} } })
    const { result, error: refusal } = JSON.parse(await response.text())
    if (result === undefined) assert.equal(refusal.data.error, error)
    else {
      assert.equal(result._meta['plat.dev/denial'].error, error)
      assert.match(result.content[0].text, text)
    }
  }
})

test('an approval for a tool of one server holds no call of another', async () => {
  const client = await connectClient(gateway, 'legacy', gateway.token('s1', ['notes', 'files']))
  const held = await client.callTool({ name: 'files__test_simple_text', arguments: {} })
  assert.match(JSON.stringify(held), /approval_pending/)
  const free = await client.callTool({ name: 'notes__test_simple_text', arguments: {} })
  assert.notEqual(free.isError, true)
  await client.close()
})

test('a session is valid for its caller alone', async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const begun = await gateway.send({ method: 'initialize', params })
  const session = begun.headers.get('mcp-session-id') ?? assert.fail()
  const { result } = JSON.parse(await begun.text())
  assert.match(result.instructions, /Servers: ab[0-9a-f]{8}, down, files, notes, odd, slow\.$/)
  const ping = (headers: Record<string, string>) => gateway.send({ method: 'ping' }, headers)
  assert.equal((await ping({ 'mcp-session-id': session })).status, 200)
  assert.equal((await ping({ 'mcp-session-id': session, ...bearer(['odd'], 's2') })).status, 404)
  assert.equal((await ping({ 'mcp-session-id': `${session}x` })).status, 404)
})
