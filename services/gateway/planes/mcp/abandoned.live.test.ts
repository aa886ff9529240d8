import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../testing/started.ts'
import { call } from './testing/client.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const INITIALIZE =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'

/** A gateway with a server that has sessions and delays calls of the tool `slow` until they are released. */
async function slowServer(t: TestContext) {
  const upstream = await startScriptedUpstream()
  const released = Promise.withResolvers<void>()
  t.after(() => {
    released.resolve()
    return upstream.close()
  })
  upstream.answers(async ({ body }, response) => {
    const { id, method, params } = JSON.parse(body)
    if (params?.name === 'slow') await released.promise
    const capabilities = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    const result = method === 'initialize' ? capabilities : { content: [] }
    const headers = method === 'initialize' ? { ...JSON_TYPE, 'mcp-session-id': 'own' } : JSON_TYPE
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  const { gateway, issuer } = await started(t, { upstreams: { notes: upstream.url } })
  const headersOf = (session: string, agent = 'assistant') => {
    const sub = `spiffe://plat.local/ns/default/agent/${agent}/session/${session}`
    const token = issuer.token({ sub, plat_session: session, plat_agent: agent })
    return { ...JSON_TYPE, authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
  }
  const post = (headers: Record<string, string>, body: string, signal?: AbortSignal) =>
    fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body, ...(signal && { signal }) })
  const slow = () => upstream.received.filter(({ body }) => body.includes('"slow"'))
  return {
    release: () => released.resolve(),
    slow,
    open: () => slow().filter(({ aborted }) => !aborted).length,
    /** Returns the headers of a session at the server. */
    async session(name: string): Promise<Record<string, string>> {
      const headers = headersOf(name)
      const response = await post(headers, INITIALIZE)
      return { ...headers, 'mcp-session-id': response.headers.get('mcp-session-id') ?? assert.fail('no session') }
    },
    post,
    /** Sends a call, waits until the server has received it, and disconnects. */
    async leave(headers: Record<string, string>): Promise<void> {
      const count = slow().length
      const leaving = new AbortController()
      const calling = post(headers, call('slow', `"${count}"`), leaving.signal)
      await until(() => slow().length > count, 'the call to reach the server')
      leaving.abort()
      await assert.rejects(calling)
    },
    async series(name: string): Promise<number> {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const text = await (await fetch(`${gateway.adminUrl}/metrics`, { headers })).text()
      return Number(new RegExp(`^${name}(?:\\{\\})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
    },
  }
}

const OPEN = 'plat_gateway_mcp_abandoned_calls'
const ABORTED = 'plat_gateway_mcp_abandoned_aborted_total'

test('abandoned calls use at most the share of connections of their session, and another session is served', async (t) => {
  const { session, leave, open, slow, post, series, release } = await slowServer(t)
  const [one, other] = [await session('s1'), await session('s2')]
  await leave(other)
  for (let nth = 0; nth < 6; nth++) await leave(one)
  await until(async () => (await series(OPEN)) === 5, 'the oldest to be aborted')
  assert.equal(await series(ABORTED), 2)
  await until(() => open() === 5, 'the connections of the oldest to be closed')
  // The first call is of the other session. Of this session, the two oldest were aborted.
  assert.deepEqual(
    slow().map(({ aborted }) => aborted),
    [false, true, true, false, false, false, false],
  )
  for (const headers of [one, other]) {
    const response = await post(headers, call('add'))
    assert.equal(JSON.parse(await response.text()).id, 7)
  }
  release()
  await until(async () => (await series(OPEN)) === 0, 'the calls to end with their server')
  assert.equal(await series(ABORTED), 2)
})

test('all sessions of an agent have one share of abandoned calls', async (t) => {
  const { session, leave, open, series } = await slowServer(t)
  for (let nth = 1; nth <= 5; nth++) {
    const headers = await session(`s${nth}`)
    for (let left = 0; left < 4; left++) await leave(headers)
  }
  await until(async () => (await series(OPEN)) === 16, 'the oldest to be aborted')
  await until(() => open() === 16, 'the connections of the oldest to be closed')
  assert.equal(await series(ABORTED), 4)
})
