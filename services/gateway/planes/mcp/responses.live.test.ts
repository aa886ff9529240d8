import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { json, type ScriptedUpstream, startScriptedUpstream, stream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { askAt, call, errorOf, type TestRequest } from './testing/client.ts'
import { type PlaneUnderTest, startPlane } from './testing/gateway.ts'

let upstream: ScriptedUpstream
let gateway: PlaneUnderTest

before(async () => {
  upstream = await startScriptedUpstream()
  gateway = await startPlane({ servers: { notes: { url: upstream.url } } })
})

after(async () => {
  await gateway.close()
  await upstream.close()
})

const ask = (request: TestRequest) => askAt(gateway.url, request)

/** Returns the result and code of the last call. */
async function outcomeAfter(count: number): Promise<readonly unknown[]> {
  await until(() => gateway.records.filter(({ kind }) => kind === 'outcome').length > count, 'the outcome')
  const last = gateway.records.findLast(({ kind }) => kind === 'outcome')
  return [last?.result, last?.code]
}
const outcomes = () => gateway.records.filter(({ kind }) => kind === 'outcome').length

const HOSTILE = [
  '{"jsonrpc":"2.0","id":8,"result":{"content":[],"marker":1}}',
  '{"jsonrpc":"2.0","id":"7","result":{"content":[],"marker":1}}',
  '{"jsonrpc":"2.0","result":{"content":[],"marker":1}}',
  '{"marker":1}',
  '{"jsonrpc":"2.0","id":7,"result":{"marker":1},"error":{"code":1,"message":""}}',
  '{"jsonrpc":"2.0","id":7,"result":{"marker":1},"result":{"content":[]}}',
  '{"jsonrpc":"2.0","id":7,"result":{"marker":1}}{}',
  '{"jsonrpc":"2.0","id":7,"result":{"key":marker}}',
  '{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"marker"}],"content":{}}}',
]

test('a message that is not the one response to the request fails the call and is not relayed', async () => {
  for (const text of HOSTILE) {
    for (const script of [json(text), stream([`data: ${text}\n\n`])]) {
      const count = outcomes()
      upstream.answers(script)
      const got = await (await ask({ body: call('add') })).text()
      assert.match(got, /"id":7,"result":.*"code":502,"error":"upstream_error"/, text)
      assert.doesNotMatch(got, /marker/)
      assert.deepEqual(await outcomeAfter(count), ['failed', 'upstream_error'])
    }
  }
})

test('a message of 100,000 members passes, and one with more is refused in both directions', async () => {
  const members = (count: number) => Array.from({ length: count }, (_, n) => `"${n.toString(36)}":0`).join(',')
  const request = (count: number) => {
    const text = call('add')
    const own = text.split('":').length - 1
    return text.replace('"arguments":{}', `"arguments":{${members(count - own)}}`)
  }
  const result = (count: number) =>
    `{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{${members(count - 5)}}}}`
  upstream.answers(json(result(100_000)))
  assert.ok((await (await ask({ body: request(100_000) })).text()) === result(100_000))
  const refused = await ask({ body: request(100_001) })
  assert.match(await refused.text(), /the body is not strict JSON: too many members at byte \d+/)
  upstream.answers(json(result(100_001)))
  assert.equal((await errorOf(await ask({ body: call('add') }))).error, 'upstream_error')
})

test('invalid UTF-8 fails the call', async () => {
  const body = Buffer.from('{"jsonrpc":"2.0","id":7,"result":{"content":[],"marker":"\xff"}}', 'latin1')
  upstream.answers((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body))
  assert.equal((await errorOf(await ask({ body: call('add') }))).error, 'upstream_error')
})

test("a response to one request inside another request's stream ends that stream", async () => {
  const list = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"marker"}]}}'
  upstream.answers(stream([`data: ${list}\n\n`, 'data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n']))
  const got = await (await ask({ body: '{"jsonrpc":"2.0","id":7,"method":"ping"}' })).text()
  assert.match(got, /"id":7,"error":\{"code":502/)
  assert.doesNotMatch(got, /marker/)
})

test('an event of more lines than are read ends its stream with a refusal', async () => {
  const event = (lines: number) =>
    `${'data:\n'.repeat(lines - 2)}data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n`
  upstream.answers(stream([event(20_000)]))
  assert.match(await (await ask({ body: call('add') })).text(), /"result":\{"content":\[\]/)
  upstream.answers(stream([event(20_001)]))
  const got = await (await ask({ body: call('add') })).text()
  assert.match(got, /"id":7,"result":.*"code":502/)
  assert.doesNotMatch(got, /"content":\[\]/)
})

test('a stream that ends before its response ends with a refusal under the request id', async () => {
  const count = outcomes()
  upstream.answers(stream(['data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n']))
  const got = await (await ask({ body: call('add') })).text()
  assert.match(got, /"id":7,"result":.*"code":502/)
  assert.deepEqual(await outcomeAfter(count), ['failed', 'upstream_error'])
})

const LEGACY = { 'mcp-protocol-version': '2025-11-25' }

/** Returns the id of the first event of a tool call whose server closes the stream at once. */
async function suspendedCall(tool = 'add', id = '7'): Promise<string> {
  upstream.answers(stream(['id: é1\nretry: 10\ndata:\n\n']))
  const text = await (await ask({ body: call(tool, id), headers: LEGACY })).text()
  assert.doesNotMatch(text, /error/)
  return /^id: (.+)$/m.exec(text)?.[1] ?? assert.fail(text)
}

const resume = (eventId: string) => ask({ method: 'GET', headers: { ...LEGACY, 'last-event-id': eventId } })

test('a legacy stream with an event id may end before its response: the call is suspended, and can be resumed', async () => {
  const count = outcomes()
  const eventId = await suspendedCall()
  assert.deepEqual(await outcomeAfter(count), ['suspended', undefined])
  upstream.answers(stream(['id: 2\ndata:\n\n']))
  assert.match(await (await resume(eventId)).text(), /^id: p1\./)
  assert.deepEqual(await outcomeAfter(count + 1), ['suspended', undefined])
  upstream.answers(stream(['data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n']))
  assert.match(await (await resume(eventId)).text(), /"id":7,"result"/)
  const { headers } = upstream.received.at(-1) ?? assert.fail()
  assert.equal(Buffer.from(String(headers['last-event-id']), 'latin1').toString('utf8'), 'é1')
  assert.deepEqual(await outcomeAfter(count + 2), ['completed', undefined])
})

test('a resumed stream relays only the response to its request', async () => {
  const eventId = await suspendedCall('add', '"mine"')
  upstream.answers(stream(['data: {"jsonrpc":"2.0","id":"other","result":{"content":["marker"]}}\n\n']))
  const got = await (await resume(eventId)).text()
  assert.match(got, /"id":"mine","result":.*"code":502/)
  assert.doesNotMatch(got, /marker/)
  upstream.answers(stream(['data: {"jsonrpc":"2.0","id":"mine","result":{"content":"marker"}}\n\n']))
  assert.doesNotMatch(await (await resume(eventId)).text(), /marker/)
})

test('a response in a stream without a request is refused', async () => {
  upstream.answers(stream(['data: {"jsonrpc":"2.0","id":7,"result":{"marker":1}}\n\n']))
  const got = await (await ask({ method: 'GET', headers: LEGACY })).text()
  assert.match(got, /upstream_error/)
  assert.doesNotMatch(got, /marker/)
})

test('a list of tools cannot be resumed, because it would not pass the filters', async () => {
  upstream.answers(stream(['id: 1\ndata:\n\n']))
  const body = '{"jsonrpc":"2.0","id":3,"method":"tools/list"}'
  const opened = await (await ask({ body, headers: LEGACY })).text()
  const eventId = /^id: (.+)$/m.exec(opened)?.[1] ?? assert.fail(opened)
  upstream.answers(stream(['data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"marker"}]}}\n\n']))
  const got = await (await resume(eventId)).text()
  assert.match(got, /"id":3,"error"/)
  assert.doesNotMatch(got, /marker/)
})

test('an event id that is not valid in a header is removed', async () => {
  upstream.answers(stream(['id: a\u0001b\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n']))
  assert.doesNotMatch(await (await ask({ body: call('add'), headers: LEGACY })).text(), /^id:/m)
})

test('an error status is relayed with a JSON-RPC error, or without a body', async () => {
  const error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
  for (const [body, relayed] of [
    [error, error],
    ['{"error":"marker"}', ''],
    ['{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"marker"}}', ''],
  ] as const) {
    upstream.answers((_, response) => void response.writeHead(404, { 'content-type': 'application/json' }).end(body))
    const response = await ask({ body: call('add') })
    assert.deepEqual([response.status, await response.text()], [404, relayed])
  }
  upstream.answers((_, response) => void response.writeHead(405, { 'content-type': 'text/plain' }).end('marker'))
  const response = await ask({ method: 'GET' })
  assert.deepEqual([response.status, await response.text()], [405, ''])
})

/** An upstream that writes these pieces, one per event loop turn, and then nothing more. */
async function silentAfter(pieces: readonly string[], probe: (url: string) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', async () => {
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })
  })
  const port = await listening(server)
  try {
    await probe(`http://127.0.0.1:${port}/mcp`)
  } finally {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
}

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'

for (const [what, pieces] of [
  ['a head in pieces', ['HTTP/1.1 200', ' OK\r\ncontent-', 'type: application/json\r\n']],
  ['a JSON body', [`${HEAD}content-length: 100\r\n\r\n`, '{"jsonrpc"', ':"2.0",']],
] as const) {
  test(`an upstream that stops sending within ${what} is upstream_timeout`, async () => {
    await silentAfter(pieces, async (url) => {
      const slow = await startPlane({ servers: { notes: { url, timeoutSeconds: 1 } } })
      const failed = await errorOf(await askAt(slow.url, { body: call('add') }))
      await slow.close()
      assert.deepEqual([failed.code, failed.error], [504, 'upstream_timeout'])
    })
  })
}
