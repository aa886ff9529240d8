import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startPlane } from '../testing/gateway.ts'

async function setUp(t: TestContext, stdioReady: (ms: number) => null | Promise<string | null>) {
  const upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const servers = { notes: { url: upstream.url, stdio: true, timeoutSeconds: 7 } }
  const plane = await startPlane({ servers, options: { stdioReady } })
  t.after(() => Promise.all([plane.close(), upstream.close()]))
  const call = (signal?: AbortSignal) =>
    fetch(`${plane.url}notes`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer s1',
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
      ...(signal && { signal }),
    })
  return { upstream, plane, call }
}

test('a call to a stdio server waits until the bridge listens, within the time limit of the server', async (t) => {
  const listens = Promise.withResolvers<null>()
  const limits: number[] = []
  const { upstream, call } = await setUp(t, (ms) => {
    limits.push(ms)
    return listens.promise
  })
  const response = call()
  while (limits.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([limits, upstream.received.length], [[7000], 0])
  listens.resolve(null)
  assert.match(await (await response).text(), /"content":\[\]/)
})

test('a call whose bridge does not start says why, and one whose client leaves is not made', async (t) => {
  const { upstream, call } = await setUp(t, async () => 'it ended: exit code 1')
  assert.match(await (await call()).text(), /notes: the bridge of stdio servers does not run: it ended: exit code 1/)
  const listens = Promise.withResolvers<null>()
  let waiting = false
  const other = await setUp(t, () => {
    waiting = true
    return listens.promise
  })
  const leave = new AbortController()
  const left = other.call(leave.signal).catch(() => null)
  while (!waiting) await new Promise((resolve) => setImmediate(resolve))
  leave.abort()
  await left
  while (!other.plane.records.some(({ kind }) => kind === 'outcome'))
    await new Promise((resolve) => setImmediate(resolve))
  listens.resolve(null)
  assert.deepEqual([upstream.received.length, other.upstream.received.length], [0, 0])
})
