import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import Type from 'typebox'
import { type BuiltinServer, builtinTool, type Caller, deny, toolFailure, toolText } from '../../../call/index.ts'
import { askAt, call, errorOf, modernHeaders, modernMeta, type TestRequest } from '../testing/client.ts'
import { type PlaneUnderTest, startPlane } from '../testing/gateway.ts'

let gateway: PlaneUnderTest
let stops = 0

const echo = builtinTool({
  name: 'echo',
  title: 'Echo',
  description: 'Says it again.',
  inputSchema: Type.Object({ text: Type.String({ maxLength: 3 }) }, { additionalProperties: false }),
  annotations: { readOnlyHint: true },
  async run({ text }, { identity }) {
    if (text === 'no') return deny('policy_denied', 'it says no')
    const attempts = [{ endpoint: 'http://there', status: 200, ms: 1 }]
    return text === 'bad' ? toolFailure('it is bad', attempts) : toolText(`${identity.session}: ${text}`, attempts)
  },
})

const wait = builtinTool({
  name: 'wait',
  title: 'Wait',
  description: 'Waits until the call is stopped.',
  inputSchema: Type.Object({}),
  annotations: {},
  run: (_, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        stops++
        resolve(toolFailure('stopped'))
      })
    }),
})

const server: BuiltinServer = {
  name: 'plat-echo',
  title: 'Echo',
  instructions: 'Says things again.',
  trust: 'untrusted',
  dataClass: 'public',
  labels: () => ({ taints: [], clearTaints: [], sinks: [] }),
  tools: ({ identity: { session } }: Caller) => (session === 'alice' ? [echo, wait] : []),
}

before(async () => {
  gateway = await startPlane({ servers: { notes: { url: '', builtin: server } } })
})

after(() => gateway.close())

const ask = (request: TestRequest) => askAt(gateway.url, request)
const legacy = (method: string, params: object = {}) =>
  ask({ body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }) })
const modern = (method: string, params = '') =>
  ask({
    body: `{"jsonrpc":"2.0","id":"x","method":"${method}","params":{${params}${modernMeta}}}`,
    headers: modernHeaders(method),
  })
const say = (args: object, session = 'alice') =>
  ask({ body: call('echo').replace('"arguments":{}', `"arguments":${JSON.stringify(args)}`), session })

test('a handshake returns the requested revision if it has one, otherwise the latest', async () => {
  const agreed = async (protocolVersion: string) => {
    const { result } = JSON.parse(await (await legacy('initialize', { protocolVersion, capabilities: {} })).text())
    assert.deepEqual(result.capabilities, { tools: {} })
    assert.equal(result.serverInfo.name, 'plat-echo')
    return result.protocolVersion
  }
  assert.equal(await agreed('2025-03-26'), '2025-03-26')
  assert.equal(await agreed('2024-11-05'), '2025-11-25')
  assert.equal(await agreed('2026-07-28'), '2025-11-25')
  const noted = await ask({ body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' })
  assert.deepEqual([noted.status, await noted.text()], [202, ''])
  assert.deepEqual(JSON.parse(await (await legacy('ping')).text()), { jsonrpc: '2.0', id: 7, result: {} })
})

test('a discovery and a list of revision 2026-07-28 have all required members', async () => {
  const { result } = JSON.parse(await (await modern('server/discover')).text())
  assert.equal(result.resultType, 'complete')
  assert.deepEqual([result.capabilities, result.instructions], [{ tools: {} }, 'Says things again.'])
  assert.ok(result.supportedVersions.includes('2026-07-28'))
  const { id, result: listed } = JSON.parse(await (await modern('tools/list')).text())
  assert.deepEqual([id, listed.resultType, listed.ttlMs, listed.cacheScope], ['x', 'complete', 0, 'private'])
  assert.deepEqual(
    listed.tools.map(({ name }: { name: string }) => name),
    ['echo', 'wait'],
  )
  assert.deepEqual(listed.tools[0].inputSchema.properties.text, { type: 'string', maxLength: 3 })
})

test('a tool returns a result, a failure or a denial; its upstream attempts are recorded', async () => {
  const reply = await (await say({ text: 'hi' })).text()
  assert.equal(reply, '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"alice: hi"}]}}')
  assert.deepEqual(gateway.records.at(-1)?.attempts, [{ endpoint: 'http://there', ms: 1, status: 200 }])
  const failed = JSON.parse(await (await say({ text: 'bad' })).text())
  assert.deepEqual(failed.result, { content: [{ type: 'text', text: 'it is bad' }], isError: true })
  assert.equal((await errorOf(await say({ text: 'no' }))).error, 'policy_denied')
  assert.equal(gateway.records.at(-1)?.result, 'denied')
})

test('invalid arguments are a tool failure that names them, and the tool does not run', async () => {
  for (const [args, words] of [
    [{ text: 'long' }, /^arguments\/text: /],
    [{}, /^arguments: .*text/],
    [{ text: 'hi', more: 1 }, /^arguments\/more: the tool has no such argument/],
  ] as const) {
    const { result } = JSON.parse(await (await say(args)).text())
    assert.equal(result.isError, true)
    assert.match(result.content[0].text, words)
  }
})

test('a caller without tools gets an empty list and cannot call any', async () => {
  const listed = await ask({ body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', session: 'bob' })
  assert.deepEqual(JSON.parse(await listed.text()).result.tools, [])
  assert.equal((await errorOf(await say({ text: 'hi' }, 'bob'))).error, 'unknown_tool')
})

test('other methods, streams and sessions are refused', async () => {
  for (const method of ['resources/list', 'prompts/get', 'completion/complete', 'logging/setLevel']) {
    const params = { name: 'a', uri: 'a', ref: {}, argument: {}, level: 'info' }
    assert.equal((await errorOf(await legacy(method, params))).error, 'unknown_method', method)
  }
  for (const method of ['GET', 'DELETE']) assert.equal((await ask({ method })).status, 405, method)
})

test('a tool is aborted when its caller disconnects', async () => {
  const leaving = new AbortController()
  const answer = ask({ body: call('wait'), signal: leaving.signal }).catch(() => null)
  const begun = () => gateway.records.some(({ kind, tool }) => kind === 'intent' && tool === 'wait')
  while (!begun()) await new Promise((resolve) => setImmediate(resolve))
  leaving.abort()
  assert.equal(await answer, null)
  while (stops === 0) await new Promise((resolve) => setImmediate(resolve))
})
