import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createAuthority } from '@plat/testkit/authority'
import { listening, tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { type GatewayFixture, started } from '../../testing/started.ts'

const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'

/** A tool call with a body of exactly `bytes` bytes. */
function callOf(bytes: number): string {
  const [before, after] = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":"',
    '"}}}',
  ]
  return before + 'x'.repeat(bytes - before.length - after.length) + after
}

const USUAL_BYTES = 200

function headersOf({ issuer }: GatewayFixture): Record<string, string> {
  return {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  }
}

/** HTTP status, and the error code of a refusal or null. */
async function call(fixture: GatewayFixture, body: string): Promise<[number, string | null]> {
  const response = await fetch(`${fixture.gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: headersOf(fixture),
    body,
  })
  const error = /"error":"(\w+)"/.exec(await response.text())?.[1] ?? null
  return [response.status, error]
}

async function answering(t: TestContext) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json(RESULT))
  return upstream
}

test('a body of exactly maxBodyBytes passes, one byte more is refused', async (t) => {
  // Shows D3.listen.listen, D3.listen.maxBodyBytes, D3.limit.body.
  const upstream = await answering(t)
  const fixture = await started(t, { listen: '127.0.0.1:0', upstreams: { notes: upstream.url }, maxBodyBytes: 1000 })
  assert.match(fixture.gateway.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.deepEqual(await call(fixture, callOf(1000)), [200, null])
  assert.deepEqual(await call(fixture, callOf(1001)), [413, 'body_too_large'])
  assert.equal(upstream.received.length, 1)
})

test('a slow body is aborted after bodyReadTimeoutSeconds, even while bytes arrive', async (t) => {
  // Shows D3.listen.bodyReadTimeoutSeconds, D3.limit.bodyRead.
  const upstream = await answering(t)
  const fixture = await started(t, { upstreams: { notes: upstream.url }, bodyReadTimeoutSeconds: 1 })
  const body = callOf(4000)
  const socket = connect(fixture.gateway.port, '127.0.0.1')
  socket.on('error', () => {})
  const lines = Object.entries(headersOf(fixture)).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /mcp/notes HTTP/1.1\r\nhost: localhost\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n`)
  let sent = 0
  const drip = setInterval(() => socket.writable && socket.write(body.slice(sent, ++sent)), 20)
  let answer = ''
  socket.on('data', (part) => (answer += part))
  await until(() => answer.includes('}'), 'the refusal')
  clearInterval(drip)
  socket.destroy()
  assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*"error":"request_timeout"/)
  assert.ok(sent < body.length)
  assert.equal(upstream.received.length, 0)
})

test('a call to a server that does not respond within upstreamTimeoutSeconds is aborted', async (t) => {
  // Shows D3.listen.upstreamTimeoutSeconds, D3.limit.upstreamHeaders.
  const upstream = await answering(t)
  upstream.answers(() => {})
  const fixture = await started(t, { upstreams: { notes: upstream.url }, upstreamTimeoutSeconds: 1 })
  assert.deepEqual(await call(fixture, callOf(USUAL_BYTES)), [200, 'upstream_timeout'])
})

test('upstreamCAFile makes a server with a private authority trusted', async (t) => {
  // Shows D3.listen.upstreamCAFile.
  const root = await createAuthority({ name: 'ours', now: systemClock.now() })
  const leaf = await root.issue({ name: 'notes', dnsNames: ['localhost'] })
  const key = leaf.privateKey.export({ format: 'pem', type: 'pkcs8' })
  const server = createServer({ cert: leaf.pem, key }, (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(RESULT),
  )
  const port = await listening(server)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const upstreamCAFile = join(tempFolder(), 'ca.pem')
  await writeFile(upstreamCAFile, root.pem)
  const upstreams = { notes: `https://localhost:${port}/mcp` }
  assert.deepEqual(await call(await started(t, { upstreams }), callOf(USUAL_BYTES)), [200, 'upstream_error'])
  assert.deepEqual(await call(await started(t, { upstreams, upstreamCAFile }), callOf(USUAL_BYTES)), [200, null])
})
