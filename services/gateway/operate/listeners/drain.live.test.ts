import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'
const CALLERS = 20
const CALLS_BEFORE = 100

test('after SIGTERM readiness fails, and no call of a caller that leaves in time fails', async (t) => {
  // Shows D3.listen.shutdownDelaySeconds, D3.listen.shutdownTimeoutSeconds, D3.endpoint.readyz, D3.limit.drain.
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
  })
  const own = { upstreams: { notes: upstream.url }, shutdownDelaySeconds: 3 }
  const { gateway, issuer } = await started(t, own, true)
  const headers = {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  }
  let open = true
  const statuses: number[] = []
  const caller = async () => {
    while (open) {
      const response = await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body: CALL })
      await response.text()
      statuses.push(response.status)
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, caller))
  await until(() => statuses.length >= CALLS_BEFORE, 'calls under way')
  const drained = gateway.drain()
  await until(async () => (await fetch(`${gateway.url}/readyz`)).status === 503, 'readiness to fail')
  const atNotice = statuses.length
  await until(() => statuses.length > atNotice + CALLERS, 'calls during the delay')
  open = false
  await callers
  await drained
  assert.deepEqual([...new Set(statuses)], [200])
  await assert.rejects(fetch(`${gateway.url}/readyz`))
})

test('calls in flight at the end of the drain time get a retryable error', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(() => {})
  const { gateway, issuer } = await started(t, { upstreams: { notes: upstream.url }, shutdownTimeoutSeconds: 0 }, true)
  const headers = {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json',
    'content-type': 'application/json',
  }
  const waiting = fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body: CALL })
  await upstream.request(1)
  await gateway.drain()
  assert.match(await (await waiting).text(), /"error":"state_unavailable"/)
})
