import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
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
      hidden: { url, protocolVersions: ['2025-06-18'] },
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

const refusals: readonly [string, TestRequest, number, number, string][] = [
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
  ['an unknown method', { body: '{"jsonrpc":"2.0","id":1,"method":"things/list"}' }, 200, -32601, 'unknown_method'],
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
    const refused = await errorOf(await ask(request))
    assert.deepEqual([refused.status, refused.code, refused.error], [status, code, error])
    assert.equal(upstream.received.length, seen)
    const kinds = gateway.records.slice(before).map((rec) => rec.kind)
    assert.deepEqual(kinds, error === 'upstream_error' ? ['intent', 'outcome'] : ['decision'])
  })
}

test('a request without a token gets a challenge and leaves no record', async () => {
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
    const refused = await errorOf(await ask({ body, headers }))
    assert.deepEqual([refused.status, refused.code, refused.id], [status, code, 1])
  })
}

test('2026-07-28: a request to a server that does not support it is refused with the supported versions, before any policy', async () => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret",${modernMeta}}}`
  const response = await ask({ body, server: 'other', headers: modernHeaders('tools/call', 'secret') })
  const { error } = JSON.parse(await response.text())
  assert.equal(response.status, 400)
  assert.deepEqual([error.code, error.data.supported, error.data.requested], [-32022, ['2025-06-18'], '2026-07-28'])
})

test('2026-07-28: a caller without the scope does not learn which versions a server supports', async () => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",${modernMeta}}}`
  const refused = await errorOf(await ask({ body, server: 'hidden', headers: modernHeaders('tools/call', 'add') }))
  assert.deepEqual([refused.status, refused.error], [403, 'insufficient_scope'])
})

test('2026-07-28: mirrored headers are written from the body, and unknown methods are refused with 404', async () => {
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}'))
  const args = '"arguments":{"region":"eu"}'
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"näme",${args},${modernMeta}}}`
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

test('Allow lists the supported methods: only POST if GET and DELETE are refused', async () => {
  const modern = { 'mcp-protocol-version': '2026-07-28' }
  for (const [request, allow] of [
    [{ method: 'GET', headers: modern }, 'POST'],
    [{ method: 'DELETE', headers: modern }, 'POST'],
    [{ method: 'PUT', body: '{}' }, 'POST, GET, DELETE'],
  ] as const) {
    const response = await ask(request)
    assert.deepEqual([response.status, response.headers.get('allow')], [405, allow])
  }
})
