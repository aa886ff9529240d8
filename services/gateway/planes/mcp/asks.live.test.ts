import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { json, type Received, type ScriptedUpstream, startScriptedUpstream, stream } from '@plat/testkit/mcp-upstream'
import { askAt, call, errorOf, modernHeaders, type TestRequest } from './testing/client.ts'
import { type PlaneUnderTest, startPlane } from './testing/gateway.ts'

let upstream: ScriptedUpstream
let gateway: PlaneUnderTest
const denied = new Set<string>()

before(async () => {
  upstream = await startScriptedUpstream()
  const { url } = upstream
  gateway = await startPlane({ servers: { notes: { url }, other: { url } }, allows: (tool) => !denied.has(tool) })
})

after(async () => {
  await gateway.close()
  await upstream.close()
})

const ask = (request: TestRequest) => askAt(gateway.url, request)
const last = (): Received => upstream.received.at(-1) ?? assert.fail('nothing came')
const records = (kind: string) => gateway.records.filter((one) => one.kind === kind)

/** Returns what the gateway sends to the client for a request of the server during a call, and the sealed id of that request. */
async function requestedOfClient(message: string): Promise<{ text: string; id: string }> {
  upstream.answers(stream([`data: ${message}\n\n`, 'data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n']))
  const text = await (await ask({ body: call('add') })).text()
  return { text, id: /"id" ?: ?"(p1\.[\w-]+)"/.exec(text)?.[1] ?? assert.fail(text) }
}

const elicit =
  '{ "id" : 12345678901234567890,"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"who?"} }'
const answer = (id: string) => `{"jsonrpc":"2.0","id":"${id}","result":{"action":"accept","n":1.0}}`
const accepts = () => upstream.answers((_, response) => void response.writeHead(202).end())

test('a server request is forwarded with a sealed id, and its response with the original id; both are recorded', async () => {
  const { text, id } = await requestedOfClient(elicit)
  assert.ok(text.startsWith(`data: ${elicit.replace('12345678901234567890', `"${id}"`)}\n`), text)
  const message = records('message').at(-1) ?? assert.fail('no record')
  assert.equal(message.method, 'elicitation/create')
  assert.equal(message.tool, 'add')
  accepts()
  const response = await ask({ body: answer(id) })
  assert.equal(response.status, 202)
  assert.equal(last().body, answer(id).replace(`"${id}"`, '12345678901234567890'))
  const outcome = records('outcome').at(-1) ?? assert.fail('no record')
  assert.deepEqual([outcome.op, outcome.tool, outcome.parent], ['mcp.answer', 'add', message.call])
})

test('a response to a server request is accepted only from the session and for the server of the request', async () => {
  const { id } = await requestedOfClient(elicit)
  const count = upstream.received.length
  const flipped = `${id.slice(0, -2)}${id.at(-2) === 'A' ? 'B' : 'A'}${id.at(-1)}`
  for (const foreign of [
    { session: 'bob', body: answer(id) },
    { server: 'other', body: answer(id) },
    { body: answer(flipped) },
    { body: answer('12345678901234567890') },
    { body: answer(id).replace(`"${id}"`, '5') },
  ]) {
    const response = await ask(foreign)
    assert.equal(response.status, 404)
    assert.equal((await errorOf(response)).error, 'not_found')
  }
  assert.equal(upstream.received.length, count)
})

test('a response to a server request is denied if its call has been denied in the meantime', async () => {
  const { id } = await requestedOfClient(elicit)
  denied.add('add')
  const response = await ask({ body: answer(id) })
  denied.clear()
  assert.equal(response.status, 403)
  assert.equal((await errorOf(response)).error, 'policy_denied')
})

test('a server cancels its request with the sealed id that the client knows', async () => {
  const cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345678901234567890}}'
  upstream.answers(stream([`data: ${elicit}\n\n`, `data: ${cancelled}\n\n`]))
  const text = await (await ask({ body: call('add') })).text()
  const id = /"id" : "(p1\.[\w-]+)"/.exec(text)?.[1] ?? assert.fail(text)
  assert.ok(text.includes(`"params":{"requestId":"${id}"}`), text)
})

test('a stream with too many server requests is aborted', async () => {
  const question = (id: number) => `data: {"jsonrpc":"2.0","id":${id},"method":"roots/list"}\n\n`
  upstream.answers(stream(Array.from({ length: 65 }, (_, id) => question(id))))
  const text = await (await ask({ body: call('add') })).text()
  assert.match(text, /upstream_error/)
  assert.equal(text.split('roots/list').length - 1, 64)
})

test('a server request with two ids or after a byte order mark is refused', async () => {
  upstream.answers(stream([`data: ${elicit.replace('{ ', '{ "id":1,')}\n\n`]))
  assert.match(await (await ask({ body: call('add') })).text(), /upstream_error/)
  upstream.answers(stream([`\ufeffdata: ${elicit}\n\n`]))
  assert.match(await (await ask({ body: call('add') })).text(), /"id" : "p1\./)
  upstream.answers(json(elicit))
  assert.equal((await errorOf(await ask({ body: call('add') }))).error, 'upstream_error')
})

test('a cursor is sealed: it is valid only for its session and server', async () => {
  const list = (cursor: string) => `{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"${cursor}"}}`
  upstream.answers(
    json('{"jsonrpc":"2.0","id":1,"result":{"resources":[],"nextCursor":"p\\u00e1ge","cacheScope":"public"}}'),
  )
  const { result } = JSON.parse(
    await (await ask({ body: '{"jsonrpc":"2.0","id":1,"method":"resources/list"}' })).text(),
  )
  assert.match(result.nextCursor, /^p1\./)
  assert.equal(result.cacheScope, 'private')
  await ask({ body: list(result.nextCursor) })
  assert.equal(last().body, list('p\\u00e1ge'))
  for (const foreign of [
    { session: 'bob', body: list(result.nextCursor) },
    { server: 'other', body: list(result.nextCursor) },
    { body: list('p1.AAAA') },
    { body: list('p\\u00e1ge') },
  ]) {
    assert.equal((await errorOf(await ask(foreign))).code, 404)
  }
})

const modern = (more: string, capabilities = '{"elicitation":{}}') =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":${capabilities}}${more}}}`
const round = (body: string, session = 'alice') => ask({ body, session, headers: modernHeaders('tools/call', 'add') })
const inputs = '"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"who?"}}}'
const roundResult = (state: string) =>
  json(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required",${inputs}${state}}}`)

test('the state of a round is sealed; the next round sends it back, and its record names the previous round', async () => {
  for (const [state, upstreamState] of [
    [',"requestState":"s\\u0031"', ',"requestState":"s\\u0031"'],
    ['', ''],
  ] as const) {
    upstream.answers(roundResult(state))
    const { result } = JSON.parse(await (await round(modern(''))).text())
    assert.match(result.requestState, /^p1\./)
    const message = records('message').at(-1) ?? assert.fail('no record')
    assert.equal(message.method, 'elicitation/create')
    upstream.answers(json('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'))
    const responses = ',"inputResponses":{"a":{"action":"accept"}}'
    await round(modern(`${responses},"requestState":"${result.requestState}"`))
    assert.equal(last().body, modern(`${responses}${upstreamState}`))
    assert.equal(records('outcome').at(-1)?.parent, message.call)
    const foreign = await round(modern(`${responses},"requestState":"${result.requestState}"`), 'bob')
    assert.equal((await errorOf(foreign)).error, 'not_found')
  }
})

test('a round may request only capabilities that the client offers', async () => {
  upstream.answers(roundResult(''))
  assert.equal((await errorOf(await round(modern('', '{"sampling":{}}')))).error, 'upstream_error')
  upstream.answers(json(`{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"a":{"method":"tools/call"}}}}`))
  assert.equal((await errorOf(await round(modern('', '{"tools":{}}')))).error, 'upstream_error')
})

test('trace context and structured results are forwarded unchanged, in the message and in the headers', async () => {
  const meta = '"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","baggage":"a=b"}'
  const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{},${meta}}}`
  const result =
    '{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"n":12345678901234567890,"nextCursor":"c"}}}'
  upstream.answers(json(result))
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00', tracestate: 'x=y' }
  const response = await ask({ body, headers })
  assert.equal(await response.text(), result)
  assert.equal(last().body, body)
  assert.deepEqual([last().headers.traceparent, last().headers.tracestate], [headers.traceparent, headers.tracestate])
})

test('a subscription stays open, relays changes, and is aborted upstream when its client disconnects', async () => {
  const listen = 'subscriptions/listen'
  const acknowledged = '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'
  const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}'
  upstream.answers((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${acknowledged}\n\ndata: ${changed}\n\n`)
    response.once('close', () => gone.resolve())
  })
  const gone = Promise.withResolvers<void>()
  const abort = new AbortController()
  const body = modern('').replace('"tools/call"', `"${listen}"`).replace('"name":"add","arguments":{},', '')
  const response = await ask({ body, headers: modernHeaders(listen), signal: abort.signal })
  const reader = response.body?.getReader() ?? assert.fail('no stream')
  let text = ''
  while (!text.includes('list_changed')) {
    const { value } = await reader.read()
    text += Buffer.from(value ?? assert.fail(text)).toString()
  }
  assert.equal(text, `data: ${acknowledged}\n\ndata: ${changed}\n\n`)
  abort.abort()
  await gone.promise
})

const ROOTS = '{"jsonrpc":"2.0","id":3,"method":"roots/list"}'
const UNKNOWN = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rm"}}'
const PING = '{"jsonrpc":"2.0","id":3,"method":"ping"}'

test('a server request in a stream of 2026-07-28 ends the stream as a failure of the server', async () => {
  const note = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a"}}'
  const response = 'data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n'
  const listen = modern('')
    .replace('"tools/call"', '"subscriptions/listen"')
    .replace('"name":"add","arguments":{},', '')
  for (const request of [elicit, ROOTS, UNKNOWN, PING]) {
    upstream.answers(stream([`data: ${note}\n\n`, `data: ${request}\n\n`, response]))
    const text = await (await round(modern('', '{"elicitation":{},"roots":{}}'))).text()
    assert.ok(text.startsWith(`data: ${note}\n\n`), text)
    assert.match(text, /"error":"upstream_error"/)
    assert.doesNotMatch(text, /who\?|roots|"rm"|"content":\[\]/)
    const { result, code } = records('outcome').at(-1) ?? assert.fail('no record')
    assert.deepEqual([result, code], ['failed', 'upstream_error'])
    upstream.answers(stream([`data: ${note}\n\n`, `data: ${request}\n\n`]))
    const subscription = await ask({ body: listen, headers: modernHeaders('subscriptions/listen') })
    assert.match(await subscription.text(), /"error":"upstream_error"/)
  }
})
