import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { denialOf } from '@plat/testkit/mcp/denial'
import { json, type ScriptedUpstream, startScriptedUpstream, stream } from '@plat/testkit/mcp-upstream'
import { askAt, call, errorOf, modernHeaders, modernMeta, type TestRequest } from './testing/client.ts'
import { type PlaneUnderTest, startPlane } from './testing/gateway.ts'

let upstream: ScriptedUpstream
let gateway: PlaneUnderTest
let seen = 0

before(async () => {
  upstream = await startScriptedUpstream()
  const { url } = upstream
  gateway = await startPlane({
    servers: {
      notes: { url },
      other: { url, protocolVersions: ['2025-06-18'] },
      everything: { url: 'http://127.0.0.1:1/mcp' },
    },
    allows: (tool) => !tool.startsWith('secret'),
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
})

afterEach(() => {
  seen = upstream.received.length
})

const ask = (request: TestRequest) => askAt(gateway.url, request)

test('numbers beyond 2^53, member order and spaces are forwarded unchanged in both directions', async () => {
  const sent =
    '{ "params" : {"arguments":{"n":12345678901234567890,"b":1,"a":1.0}, "name":"add"},"id":9007199254740993,"method":"tools/call","jsonrpc":"2.0"}'
  const responseText = '{"id":9007199254740993 ,"jsonrpc":"2.0","result":{"z":12345678901234567890,"content":[]}}'
  upstream.answers(json(responseText))
  const response = await ask({ body: sent })
  assert.equal(await response.text(), responseText)
  assert.equal(upstream.received.at(-1)?.body, sent)
})

test('credentials, cookies and x-plat headers are never forwarded', async () => {
  upstream.answers(
    json('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}', { 'set-cookie': 'a=b', 'www-authenticate': 'Basic' }),
  )
  const extra = { cookie: 'c=d', 'x-plat-user': 'root', dpop: 'x', 'x-other': 'y', traceparent: '00-1' }
  const response = await ask({ body: call('add'), headers: extra })
  const { headers } = upstream.received.at(-1) ?? assert.fail()
  for (const name of ['authorization', 'cookie', 'x-plat-user', 'dpop', 'x-other'])
    assert.equal(headers[name], undefined)
  assert.equal(headers.traceparent, '00-1')
  assert.equal(response.headers.get('set-cookie'), null)
  assert.equal(response.headers.get('www-authenticate'), null)
})

test('a call of a denied tool is not forwarded, and gets a result with policy, rule and the id of the request', async () => {
  const response = await ask({ body: call('secret_tool', '"x\\u0031"') })
  const text = await response.text()
  assert.equal(response.status, 200)
  assert.match(text, /^\{"jsonrpc":"2\.0","id":"x\\u0031","result":/)
  const { code, data } = denialOf(JSON.parse(text))
  assert.equal(code, 403)
  assert.deepEqual(data, {
    error: 'policy_denied',
    decisionId: response.headers.get('x-plat-decision-id'),
    policy: 'test/p',
    rule: 'r',
  })
  assert.equal(response.headers.get('x-should-retry'), 'false')
  assert.equal(upstream.received.length, seen)
})

const initialize = (capabilities: string) =>
  `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":${capabilities},"clientInfo":{"name":"c","version":"1"}}}`

const initialized =
  '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"tasks":{"list":{}}},"serverInfo":{"name":"s","version":"1"}}}'

async function openSession(session: string): Promise<string> {
  upstream.answers(json(initialized, { 'mcp-session-id': 'upstream-1' }))
  const response = await ask({ body: initialize('{}'), session })
  return response.headers.get('mcp-session-id') ?? assert.fail('no session id')
}

test('the tasks capability of a client is removed; all others are forwarded, and those of the server', async () => {
  upstream.answers(json(initialized))
  const response = await ask({
    body: initialize(
      '{"roots":{"listChanged":true},"experimental":{"x":1} , "sampling":{},"tasks":{},"elicitation":{"form":{}}}',
    ),
  })
  const { capabilities } = JSON.parse(upstream.received.at(-1)?.body ?? '').params
  const offered = { roots: { listChanged: true }, experimental: { x: 1 }, sampling: {}, elicitation: { form: {} } }
  assert.deepEqual(capabilities, offered)
  assert.deepEqual(JSON.parse(await response.text()).result.capabilities, { tools: {}, tasks: { list: {} } })
})

test('a session id is sealed: it is valid only for its session and server', async () => {
  const sealed = await openSession('alice')
  assert.match(sealed, /^p1\.[\w-]+$/)
  upstream.answers(json('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'))
  const used = await ask({ body: call('add'), headers: { 'mcp-session-id': sealed } })
  assert.equal(used.status, 200)
  assert.equal(upstream.received.at(-1)?.headers['mcp-session-id'], 'upstream-1')
  const flipped = `${sealed.slice(0, -2)}${sealed.at(-2) === 'A' ? 'B' : 'A'}${sealed.at(-1)}`
  for (const foreign of [
    { session: 'bob', headers: { 'mcp-session-id': sealed } },
    { server: 'other', headers: { 'mcp-session-id': sealed } },
    { headers: { 'mcp-session-id': flipped } },
    { headers: { 'mcp-session-id': 'upstream-1' } },
  ]) {
    const response = await ask({ body: call('add'), ...foreign })
    assert.equal(response.status, 404)
  }
})

test('events and comments are relayed unchanged, however they are split; their ids are sealed', async () => {
  const text =
    ': hi\r\n\r\nid: 4\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\r\n\r\ndata: {"jsonrpc":"2.0",\ndata: "id":7,"result":{"n":12345678901234567890}}\n\n'
  for (const size of [1, 7, 1000]) {
    upstream.answers(stream(text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []))
    const response = await ask({ body: call('add') })
    assert.equal(response.headers.get('x-accel-buffering'), 'no')
    const sealed = /id: (p1\.[\w-]+)\n/
    const got = await response.text()
    assert.match(got, sealed)
    assert.equal(got.replace(sealed, 'id: 4\r\n'), text)
  }
})

test('the gateway responds to pings and to requests that a server may not send; they do not reach the client', async () => {
  const sealed = await openSession('alice')
  const final = 'data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n'
  for (const [method, expected] of [
    ['"ping"', '"result":{}}'],
    ['"tools/call"', '"error":{"code":-32601,'],
    ['"\\u0074asks/list"', '"error":{"code":-32601,'],
  ] as const) {
    const first = upstream.received.length
    upstream.answers(async (request, response) => {
      if (!request.body.includes('tools/call","params"')) return void response.writeHead(202).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: {"jsonrpc":"2.0","id":12345678901234567890,"\\u006dethod":${method},"params":{}}\n\n`)
      await upstream.request(first + 2)
      response.end(final)
    })
    const response = await ask({ body: call('add'), headers: { 'mcp-session-id': sealed } })
    assert.equal(await response.text(), final)
    const answer = upstream.received[first + 1] ?? assert.fail()
    assert.ok(answer.body.startsWith(`{"jsonrpc":"2.0","id":12345678901234567890,${expected}`), answer.body)
    assert.equal(answer.headers['mcp-session-id'], 'upstream-1')
  }
})

test('a result that creates a task, or requests input in a revision without rounds, is refused', async () => {
  for (const result of [
    '{"resultType":"input_required","inputRequests":{"a":{}}}',
    '{"resultType":"task","taskId":"t"}',
  ]) {
    const message = `{"jsonrpc":"2.0","id":7,"result":${result}}`
    upstream.answers(json(message))
    assert.equal((await errorOf(await ask({ body: call('add') }))).error, 'upstream_error')
    upstream.answers(stream([`data: ${message}\n\n`]))
    const text = await (await ask({ body: call('add') })).text()
    assert.match(text, /upstream_error/)
    assert.doesNotMatch(text, /taskId|inputRequests/)
  }
})

test('a list has only the tools that policy allows, in JSON and in events; their bytes are unchanged', async () => {
  const tool = (name: string) => `{ "name":"${name}","inputSchema":{"n":12345678901234567890} }`
  const list = (tools: string) => `{"jsonrpc":"2.0","id":1,"result":{"tools":[${tools}],"ttlMs":1}}`
  const all = list([tool('secret_a'), tool('add'), tool('secret_b'), tool('list')].join(' ,\t'))
  const visible = list([tool('add'), tool('list')].join(' ,\t'))
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  upstream.answers(json(all))
  assert.equal(await (await ask({ body })).text(), visible)
  upstream.answers(stream([`event: message\ndata: ${all}\n\n`]))
  assert.equal(await (await ask({ body })).text(), `event: message\ndata: ${visible}\n\n`)
  upstream.answers(stream([`id: 1\ndata: ${all}\n\n`]))
  assert.match(await (await ask({ body })).text(), /^id: p1\.[\w-]+\n/)
  upstream.answers(json(list(tool('secret_a'))))
  assert.equal(await (await ask({ body })).text(), list(''))
  upstream.answers(json(all.replace('"result"', '"result":{},"result"')))
  assert.equal((await errorOf(await ask({ body }))).error, 'upstream_error')
  upstream.answers(json(`[${all}]`))
  assert.equal((await errorOf(await ask({ body }))).error, 'upstream_error')
})

test('upstream refusals, redirects and failures have different codes and reveal nothing about the upstream', async () => {
  const refused = 'upstream_credential'
  for (const [status, error] of [
    [301, 'upstream_error'],
    [401, refused],
    [403, refused],
    [407, refused],
    [500, 'upstream_error'],
    [503, 'upstream_error'],
  ] as const) {
    upstream.answers((_, response) => void response.writeHead(status, { 'www-authenticate': 'secret' }).end('secret'))
    const response = await ask({ body: call('add') })
    const text = await response.text()
    assert.ok(text.includes(error), text)
    assert.doesNotMatch(text, /secret|127\.0\.0\.1/)
  }
})

test('an upstream that sends no head in time is upstream_timeout', async () => {
  const slow = await startPlane({ servers: { notes: { url: upstream.url, timeoutSeconds: 1 } } })
  upstream.answers(() => {})
  const response = await fetch(`${slow.url}notes`, {
    method: 'POST',
    headers: { authorization: 'Bearer alice', 'content-type': 'application/json' },
    body: call('add'),
  })
  assert.equal((await errorOf(response)).code, 504)
  await slow.close()
})

test('an upstream that dies inside a stream ends it with a refusal under the request id', async () => {
  upstream.answers(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
    await new Promise((resolve) => setTimeout(resolve, 20))
    response.destroy()
  })
  const text = await (await ask({ body: call('add') })).text()
  assert.match(text, /"id":7,"result":.*"code":502/)
})

test('a disconnect of the client aborts the call upstream, unless the upstream has a session', async () => {
  const sealed = await openSession('alice')
  for (const [headers, aborted] of [
    [{}, true],
    [{ 'mcp-session-id': sealed }, false],
  ] as const) {
    const count = upstream.received.length + 1
    const done = Promise.withResolvers<void>()
    upstream.answers((_, response) => {
      response.once('close', () => done.resolve())
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': open\n\n')
      // A call that is not aborted ends by itself, long after its client has disconnected.
      if (!aborted) setTimeout(() => response.end(), 200)
    })
    const abort = new AbortController()
    const response = await ask({ body: call('add'), headers, signal: abort.signal })
    await response.body?.getReader().read()
    abort.abort()
    await done.promise
    assert.equal((await upstream.request(count)).aborted, aborted)
  }
})

/** Returns the sealed id of an event that the upstream sends. */
async function eventIdOf(sealed: string, id: string): Promise<string> {
  upstream.answers(stream([`id: ${id}\ndata: \n\n`]))
  const response = await ask({ method: 'GET', headers: { 'mcp-session-id': sealed } })
  return /^id: (.+)$/m.exec(await response.text())?.[1] ?? assert.fail('no event id')
}

test('GET and DELETE are relayed with the session; 2026-07-28 has neither', async () => {
  const sealed = await openSession('alice')
  const eventId = await eventIdOf(sealed, '8')
  upstream.answers(stream(['id: 9\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n']))
  const headers = { 'mcp-session-id': sealed, 'last-event-id': eventId, 'mcp-protocol-version': '2025-06-18' }
  const listening = await ask({ method: 'GET', headers })
  assert.match(await listening.text(), /list_changed/)
  const got = upstream.received.at(-1) ?? assert.fail()
  assert.deepEqual(
    [got.method, got.headers['last-event-id'], got.headers['mcp-session-id']],
    ['GET', '8', 'upstream-1'],
  )
  upstream.answers((_, response) => void response.writeHead(204).end())
  assert.equal((await ask({ method: 'DELETE', headers })).status, 204)
  assert.equal(upstream.received.at(-1)?.method, 'DELETE')
  assert.equal((await ask({ method: 'GET', headers: { 'mcp-protocol-version': '2026-07-28' } })).status, 405)
})

test('an event id resumes a stream only for its session and server', async () => {
  const sealed = await openSession('alice')
  const eventId = await eventIdOf(sealed, '8')
  const count = upstream.received.length
  for (const foreign of [
    { session: 'bob', headers: { 'last-event-id': eventId } },
    { server: 'other', headers: { 'last-event-id': eventId } },
    { headers: { 'mcp-session-id': sealed, 'last-event-id': '8' } },
  ]) {
    assert.equal((await ask({ method: 'GET', ...foreign })).status, 404)
  }
  assert.equal(upstream.received.length, count)
})

test('notifications are accepted with 202 and forwarded', async () => {
  upstream.answers((_, response) => void response.writeHead(202).end())
  const body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
  const response = await ask({ body })
  assert.deepEqual([response.status, await response.text()], [202, ''])
  assert.equal(upstream.received.at(-1)?.body, body)
})

test('members of params that no revision defines are not forwarded; _meta is', async () => {
  upstream.answers(json('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'))
  const sent = (more: string) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add",${more}"arguments":{},"_meta":{"acme/a":1}}}`
  await ask({ body: sent('"command":"rm",') })
  assert.equal(upstream.received.at(-1)?.body, sent(''))
})

test('only members that the protocol defines are forwarded of a message without a policy decision', async () => {
  upstream.answers((received, response) =>
    json(`{"jsonrpc":"2.0","id":7,"result":${received.body.includes('tools') ? '{"tools":[]}' : '{}'}}`)(
      received,
      response,
    ),
  )
  const known: Readonly<Record<string, string>> = {
    'tools/list': '',
    ping: '',
    'logging/setLevel': '"level":"info",',
    'notifications/cancelled': '"requestId":3,"reason":"a",',
  }
  for (const [method, params] of Object.entries(known)) {
    const id = method.startsWith('notifications/') ? '' : '"id":7,'
    const sent = (more: string, meta: string) =>
      `{"jsonrpc":"2.0",${id}"method":"${method}","params":{${params}${more}"_meta":{${meta}"progressToken":1}}}`
    await ask({ body: sent('"command":"rm",', '"acme/a":"secret","io.modelcontextprotocol/x":1,') })
    assert.equal(upstream.received.at(-1)?.body, sent('', ''))
  }
})

test('a mirrored parameter that repeats no value of the arguments is refused', async () => {
  upstream.answers(json('{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'))
  const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":{"b":"eu","n":[1.0]},"c":true},${modernMeta}}}`
  const status = async (parameter: string) =>
    (await ask({ body, headers: { ...modernHeaders('tools/call', 'add'), 'mcp-param-x': parameter } })).status
  for (const repeated of ['eu', '1', 'true', `=?base64?${btoa('eu')}?=`]) assert.equal(await status(repeated), 200)
  const count = upstream.received.length
  for (const strange of ['us', '2', 'false', 'null', `=?base64?${btoa('us')}?=`])
    assert.equal(await status(strange), 400)
  assert.equal(upstream.received.length, count)
})
