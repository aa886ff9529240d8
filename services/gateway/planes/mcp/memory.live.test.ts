import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type PoolBound, SharedPool } from '@plat/core'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import fc from 'fast-check'
import { askAt, errorOf } from './testing/client.ts'
import { startPlane } from './testing/gateway.ts'

const KIB = 1024
const SHARE = 256 * KIB

const callWith = (tool: string, size: number) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: tool, arguments: { x: 'x'.repeat(size) } },
  })

/** A plane with a pool of 1 MiB, and a server whose response depends on the tool's name. */
async function setup(t: TestContext) {
  const refused: PoolBound[] = []
  const bytes = new SharedPool({
    name: 'call_bytes',
    total: 4 * SHARE,
    shares: [SHARE],
    onRefused: (bound) => refused.push(bound),
  })
  const upstream = await startScriptedUpstream()
  upstream.answers(({ body }, response) => {
    const { id, params } = JSON.parse(body)
    if (params.name === 'silent') return
    if (params.name === 'dies') return void response.destroy()
    response.writeHead(200, { 'content-type': 'application/json' })
    const size = params.name === 'large' ? SHARE : params.name === 'slow' ? SHARE / 8 : 1
    const text = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'x'.repeat(size) }] } })
    if (params.name === 'slow') response.write(text.slice(0, 20_000))
    else response.end(text)
  })
  const plane = await startPlane({
    servers: { notes: { url: upstream.url } },
    allows: (tool) => tool !== 'denied',
    bytes,
  })
  t.after(async () => {
    await plane.close()
    await upstream.close()
  })
  return {
    bytes,
    refused,
    post: (session: string, body: string, signal?: AbortSignal) =>
      askAt(plane.url, { session, body, ...(signal && { signal }) }),
    /** Sends the head of a call and the first `sent` bytes of its body of `size` bytes. */
    begin(session: string, sent: number, size: number) {
      const { hostname, port, pathname } = new URL(plane.url)
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(
        `POST ${pathname}notes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${session}\r\ncontent-type: application/json\r\n` +
          `accept: application/json, text/event-stream\r\ncontent-length: ${size}\r\n\r\n`,
      )
      socket.write(callWith('read', size).slice(0, sent))
      return socket
    },
    empty: () => until(() => bytes.used === 0 && bytes.callers === 0, 'all bytes to be free'),
  }
}

test('an agent whose slow bodies use up its share is refused with overloaded, and another agent is served', async (t) => {
  const { bytes, refused, begin, post, empty } = await setup(t)
  const slow = [1, 2].map((n) => begin(`greedy:s${n}`, 100 * KIB, 120 * KIB))
  await until(() => bytes.used === 200 * KIB, 'the bodies to arrive')
  const denied = await post('greedy:s3', callWith('read', 100 * KIB))
  assert.equal(denied.headers.get('retry-after'), '2')
  const { status, error } = await errorOf(denied)
  assert.deepEqual([status, error, refused], [503, 'overloaded', ['share']])
  assert.equal((await post('modest:s1', callWith('read', 100 * KIB))).status, 200)
  for (const socket of slow) socket.destroy()
  await empty()
  assert.equal((await post('greedy:s3', callWith('read', 100 * KIB))).status, 200)
})

test('a call counts until it ends, and a response that exceeds the pool is not an overload that a client repeats', async (t) => {
  const { bytes, post, empty } = await setup(t)
  const leaving = new AbortController()
  const waiting = post('greedy:s1', callWith('silent', 200 * KIB), leaving.signal)
  await until(() => bytes.used > 200 * KIB, 'the call to be under way')
  const { status, error } = await errorOf(await post('greedy:s2', callWith('read', 100 * KIB)))
  assert.deepEqual([status, error], [503, 'overloaded'])
  const dropped = await errorOf(await post('modest:s1', callWith('large', 1)))
  assert.equal(dropped.error, 'upstream_error')
  leaving.abort()
  await assert.rejects(waiting)
  await empty()
})

test('all bytes of a call are released, however it ends', async (t) => {
  const { begin, post, empty, bytes } = await setup(t)
  const ends = fc.record({
    tool: fc.constantFrom('read', 'large', 'denied', 'dies', 'silent', 'slow'),
    size: fc.constantFrom(1, 30 * KIB, 300 * KIB, 1100 * KIB),
    agent: fc.constantFrom('a', 'b', 'c'),
    leavesAfter: fc.option(fc.nat(30)),
    sends: fc.constantFrom('all', 'part', 'invalid'),
  })
  const run = async ({
    tool,
    size,
    agent,
    leavesAfter,
    sends,
  }: typeof ends extends fc.Arbitrary<infer T> ? T : never) => {
    if (sends === 'part') {
      const socket = begin(`${agent}:s`, size, size + 1)
      await new Promise((resolve) => setTimeout(resolve, leavesAfter ?? 5))
      return void socket.destroy()
    }
    const isEndless = tool === 'silent' || tool === 'slow'
    const leaves = leavesAfter ?? (isEndless ? 40 : null)
    const signal = leaves === null ? undefined : AbortSignal.timeout(leaves)
    const body = callWith(tool, size)
    await post(`${agent}:s`, sends === 'all' ? body : body.slice(1), signal)
      .then((response) => response.text())
      .catch(() => {})
  }
  await fc.assert(
    fc.asyncProperty(fc.array(ends, { maxLength: 12 }), async (calls) => {
      await Promise.all(calls.map(run))
      await empty()
      assert.deepEqual([bytes.used, bytes.callers], [0, 0])
    }),
    { numRuns: 25 },
  )
})
