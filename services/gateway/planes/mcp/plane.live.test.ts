import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { json, type ScriptedUpstream, startScriptedUpstream, stream } from '@plat/testkit/mcp-upstream'
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

const ACCEPT = 'application/json, text/event-stream'

interface Ask {
  readonly body?: string
  readonly method?: string
  readonly server?: string
  readonly session?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

function ask({
  body,
  method = 'POST',
  server = 'notes',
  session = 'alice',
  headers = {},
  signal,
}: Ask): Promise<Response> {
  return fetch(gateway.url + server, {
    method,
    headers: { authorization: `Bearer ${session}`, accept: ACCEPT, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
    ...(signal !== undefined && { signal }),
  })
}

const call = (tool: string, id = '7') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{}}}`

const modernMeta =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

const modernHeaders = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name !== undefined && { 'mcp-name': name }),
})

async function errorOf(response: Response): Promise<{ status: number; code: number; error: string; id: unknown }> {
  const body = JSON.parse(await response.text())
  return { status: response.status, code: body.error.code, error: body.error.data.error, id: body.id }
}

test('numbers beyond 2^53, member order and spaces arrive as they were sent, both ways', async () => {
  const sent =
    '{ "params" : {"arguments":{"n":12345678901234567890,"b":1,"a":1.0}, "name":"add"},"id":9007199254740993,"method":"tools/call","jsonrpc":"2.0"}'
  const answered = '{"id":9007199254740993 ,"jsonrpc":"2.0","result":{"z":12345678901234567890,"content":[]}}'
  upstream.answers(json(answered))
  const response = await ask({ body: sent })
  assert.equal(await response.text(), answered)
  assert.equal(upstream.received.at(-1)?.body, sent)
})

test('credentials, cookies and x-plat headers never go upstream', async () => {
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

test('a denied tool is a JSON-RPC error with policy and rule, under the id of the request, and is not forwarded', async () => {
  const response = await ask({ body: call('secret_tool', '"x\\u0031"') })
  const text = await response.text()
  assert.equal(response.status, 200)
  assert.match(text, /^\{"jsonrpc":"2\.0","id":"x\\u0031","error":/)
  const { error } = JSON.parse(text)
  assert.equal(error.code, 403)
  assert.deepEqual(error.data, {
    error: 'policy_denied',
    decisionId: response.headers.get('x-plat-decision-id'),
    policy: 'test/p',
    rule: 'r',
  })
  assert.equal(response.headers.get('x-should-retry'), 'false')
  assert.equal(upstream.received.length, seen)
})

const refusals: readonly [string, Ask, number, number, string][] = [
  ['a batch', { body: `[${call('add')}]` }, 400, -32600, 'invalid_request'],
  ['a duplicate member', { body: call('add').replace('"id"', '"id":1,"id"') }, 400, -32700, 'invalid_request'],
  [
    'another content type',
    { body: call('add'), headers: { 'content-type': 'text/plain' } },
    415,
    415,
    'unsupported_media_type',
  ],
  ['a body over the limit', { body: call('x'.repeat(1024 * 1024)) }, 413, 413, 'body_too_large'],
  ['an unknown method', { body: '{"jsonrpc":"2.0","id":1,"method":"tasks/list"}' }, 200, -32601, 'unknown_method'],
  ['a PUT', { method: 'PUT', body: '{}' }, 405, 405, 'method_not_allowed'],
  ['a foreign origin', { body: call('add'), headers: { origin: 'http://evil.example' } }, 403, 403, 'forbidden'],
  [
    'a foreign session id',
    { body: call('add'), headers: { 'mcp-session-id': 'p1.AAAA' } },
    404,
    404,
    'unknown_session',
  ],
  ['a missing scope', { server: 'hidden', body: call('add') }, 403, 403, 'insufficient_scope'],
  [
    'a call without a name',
    { body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}' },
    400,
    -32600,
    'invalid_request',
  ],
  [
    'an unknown version',
    { body: call('add'), headers: { 'mcp-protocol-version': '2024-01-01' } },
    400,
    -32022,
    'unsupported_version',
  ],
  ['a dead upstream', { server: 'everything', body: call('add') }, 200, 502, 'upstream_error'],
]

for (const [what, request, status, code, error] of refusals) {
  test(`${what} is refused with ${code} on HTTP ${status}, and recorded once`, async () => {
    const before = gateway.records.length
    const told = await errorOf(await ask(request))
    assert.deepEqual([told.status, told.code, told.error], [status, code, error])
    assert.equal(upstream.received.length, seen)
    const kinds = gateway.records.slice(before).map((rec) => rec.kind)
    assert.deepEqual(kinds, error === 'upstream_error' ? ['intent', 'outcome'] : ['decision'])
  })
}

test('a request without a token is told how to get one, and leaves no record', async () => {
  const before = gateway.records.length
  const response = await fetch(`${gateway.url}notes`, { method: 'POST', body: '{}' })
  assert.equal(response.status, 401)
  assert.equal(response.headers.get('www-authenticate'), 'Bearer realm="plat"')
  assert.equal(gateway.records.length, before)
})

const ladder: readonly [string, string, Record<string, string>, number, number][] = [
  ['a version in the body alone', `{${modernMeta}}`, {}, 400, -32020],
  ['a version in the header alone', '{}', modernHeaders('tools/list'), 400, -32602],
  ['another Mcp-Method', `{${modernMeta}}`, modernHeaders('tools/call'), 400, -32020],
  [
    'a future version',
    `{${modernMeta.replace('2026-07-28', '2030-01-01')}}`,
    { ...modernHeaders('tools/list'), 'mcp-protocol-version': '2030-01-01' },
    400,
    -32022,
  ],
  [
    'a version that only the header has wrong',
    `{${modernMeta}}`,
    { ...modernHeaders('tools/list'), 'mcp-protocol-version': '2026-07-29' },
    400,
    -32020,
  ],
]

for (const [what, params, headers, status, code] of ladder) {
  test(`2026-07-28: ${what} is refused with ${code}`, async () => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${params}}`
    const told = await errorOf(await ask({ body, headers }))
    assert.deepEqual([told.status, told.code, told.id], [status, code, 1])
  })
}

test('2026-07-28: a server that does not speak it is named with the versions in common, before any policy', async () => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret",${modernMeta}}}`
  const response = await ask({ body, server: 'other', headers: modernHeaders('tools/call', 'secret') })
  const { error } = JSON.parse(await response.text())
  assert.equal(response.status, 400)
  assert.deepEqual([error.code, error.data.supported, error.data.requested], [-32022, ['2025-06-18'], '2026-07-28'])
})

test('2026-07-28: mirrored headers are written anew from the body, and unknown methods are 404', async () => {
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}'))
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"näme",${modernMeta}}}`
  const encoded = `=?base64?${Buffer.from('näme').toString('base64')}?=`
  const ok = await ask({ body, headers: { ...modernHeaders('tools/call', encoded), 'mcp-param-region': 'eu' } })
  assert.equal(ok.status, 200)
  const { headers } = upstream.received.at(-1) ?? assert.fail()
  assert.deepEqual(
    [headers['mcp-name'], headers['mcp-method'], headers['mcp-param-region']],
    [encoded, 'tools/call', 'eu'],
  )
  const wrong = await errorOf(await ask({ body, headers: modernHeaders('tools/call', 'name') }))
  assert.equal(wrong.code, -32020)
  const ping = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{${modernMeta}}}`
  const unknown = await errorOf(await ask({ body: ping, headers: modernHeaders('ping') }))
  assert.deepEqual([unknown.status, unknown.code], [404, -32601])
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

test('sampling, elicitation, roots and tasks are taken out of what the client and the server announce', async () => {
  upstream.answers(json(initialized))
  const response = await ask({
    body: initialize(
      '{"roots":{"listChanged":true},"experimental":{"x":1} , "sampling":{},"tasks":{},"elicitation":{}}',
    ),
  })
  const { capabilities } = JSON.parse(upstream.received.at(-1)?.body ?? '').params
  assert.deepEqual(capabilities, { experimental: { x: 1 } })
  assert.deepEqual(JSON.parse(await response.text()).result.capabilities, { tools: {} })
})

test('a session id is sealed: it works for its owner at its server, and is unknown to everybody else', async () => {
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

test('events pass byte for byte, however they are cut, with comments and ids', async () => {
  const text =
    ': hi\r\n\r\nid: 4\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\r\n\r\ndata: {"jsonrpc":"2.0",\ndata: "id":7,"result":{"n":12345678901234567890}}\n\n'
  for (const size of [1, 7, 1000]) {
    upstream.answers(stream(text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []))
    const response = await ask({ body: call('add') })
    assert.equal(response.headers.get('x-accel-buffering'), 'no')
    assert.equal(await response.text(), text)
  }
})

test('a server request inside a stream is answered -32601 by the gateway and never reaches the client', {
  timeout: 5_000,
}, async () => {
  const sealed = await openSession('alice')
  const asked = '{"jsonrpc":"2.0","id":12345678901234567890,"\\u006dethod":"sampling/createMessage","params":{}}'
  const final = 'data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n'
  const first = upstream.received.length
  upstream.answers(async (request, response) => {
    if (request.body.includes('-32601')) return void response.writeHead(202).end()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${asked}\n\n`)
    await upstream.request(first + 2)
    response.end(final)
  })
  const response = await ask({ body: call('add'), headers: { 'mcp-session-id': sealed } })
  assert.equal(await response.text(), final)
  const answer = upstream.received[first + 1] ?? assert.fail()
  assert.match(answer.body, /^\{"jsonrpc":"2\.0","id":12345678901234567890,"error":\{"code":-32601/)
  assert.equal(answer.headers['mcp-session-id'], 'upstream-1')
})

test('a result that asks for input, or makes a task, does not pass', async () => {
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

test('a list shows only the tools that policy allows, in JSON and in events; the rest keeps its bytes', async () => {
  const tool = (name: string) => `{ "name":"${name}","inputSchema":{"n":12345678901234567890} }`
  const list = (tools: string) => `{"jsonrpc":"2.0","id":1,"result":{"tools":[${tools}],"nextCursor":"c"}}`
  const all = list([tool('secret_a'), tool('add'), tool('secret_b'), tool('list')].join(' ,\t'))
  const shown = list([tool('add'), tool('list')].join(','))
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  upstream.answers(json(all))
  assert.equal(await (await ask({ body })).text(), shown)
  upstream.answers(stream([`id: 1\ndata: ${all}\n\n`]))
  assert.equal(await (await ask({ body })).text(), `id: 1\ndata: ${shown}\n\n`)
  upstream.answers(json(list(tool('secret_a'))))
  assert.equal(await (await ask({ body })).text(), list(''))
  upstream.answers(json(all.replace('"result"', '"result":{},"result"')))
  assert.equal((await errorOf(await ask({ body }))).error, 'upstream_error')
  upstream.answers(json(`[${all}]`))
  assert.equal((await errorOf(await ask({ body }))).error, 'upstream_error')
})

test('upstream refusals, redirects and failures are upstream_error and say nothing of the upstream', async () => {
  for (const status of [301, 401, 403, 407, 500, 503]) {
    upstream.answers((_, response) => void response.writeHead(status, { 'www-authenticate': 'secret' }).end('secret'))
    const response = await ask({ body: call('add') })
    const text = await response.text()
    assert.match(text, /upstream_error/)
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

test('an upstream that dies inside a stream ends it with an error under the request id', async () => {
  upstream.answers(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
    await new Promise((resolve) => setTimeout(resolve, 20))
    response.destroy()
  })
  const text = await (await ask({ body: call('add') })).text()
  assert.match(text, /"id":7,"error":\{"code":502/)
})

test('a client that leaves aborts a call upstream, unless the upstream keeps a session', async () => {
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
      setTimeout(() => response.end(), 200)
    })
    const abort = new AbortController()
    const response = await ask({ body: call('add'), headers, signal: abort.signal })
    await response.body?.getReader().read()
    abort.abort()
    await done.promise
    assert.equal((await upstream.request(count)).aborted, aborted)
  }
})

test('GET and DELETE are relayed with the session; 2026-07-28 has neither', async () => {
  const sealed = await openSession('alice')
  upstream.answers(stream(['id: 9\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n']))
  const headers = { 'mcp-session-id': sealed, 'last-event-id': '8', 'mcp-protocol-version': '2025-06-18' }
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

test('a list that a stream replays is held back: it has passed no filter', async () => {
  const sealed = await openSession('alice')
  const list = 'data: {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}]}}\n\n'
  upstream.answers(stream([list, ': end\n\n']))
  const response = await ask({ method: 'GET', headers: { 'mcp-session-id': sealed, 'last-event-id': '1' } })
  assert.equal(await response.text(), ': end\n\n')
})

test('notifications are accepted with 202 and passed on', async () => {
  upstream.answers((_, response) => void response.writeHead(202).end())
  const body = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
  const response = await ask({ body })
  assert.deepEqual([response.status, await response.text()], [202, ''])
  assert.equal(upstream.received.at(-1)?.body, body)
})
