import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { Overload, silentLog } from '@plat/process'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { started, TOKEN } from '../testing/started.ts'

const calm = { memory: 0.2, delayMs: 50 }
const admin = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }

test('an overloaded gateway refuses new calls, serves operators, and accepts calls again afterwards', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((_request, response) => {
    const body = { jsonrpc: '2.0', id: 1, result: { content: [] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const clock = new TestClock()
  let load = calm
  const overload = new Overload({ clock, log: silentLog, load: { read: () => load, collect() {}, close() {} } })
  const { gateway, issuer } = await started(t, { upstreams: { notes: upstream.url } }, false, { overload })
  const token = issuer.token({ scope: 'tools:notes' })
  const call = () =>
    fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
    })
  const gauge = async () => {
    const response = await fetch(`${gateway.url}/metrics`, { headers: admin })
    return /^plat_gateway_overloaded (\d)$/m.exec(await response.text())?.[1]
  }

  assert.equal((await call()).status, 200)
  assert.equal(await gauge(), '0')

  load = { ...calm, delayMs: 900 }
  await clock.advance(3000)
  const refused = await call()
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'])
  assert.equal(refused.headers.get('x-should-retry'), null)
  assert.match(await refused.text(), /"overloaded"/)
  for (const probe of ['/healthz', '/readyz']) assert.equal((await fetch(gateway.url + probe)).status, 200, probe)
  assert.equal(await gauge(), '1')
  const revocation = { target: { session: 'default/other/s9' }, mode: 'revoke', reason: 'test' }
  const revoked = await fetch(`${gateway.url}/v1/revocations`, {
    method: 'POST',
    headers: admin,
    body: JSON.stringify(revocation),
  })
  assert.equal(revoked.ok, true, await revoked.text())

  load = calm
  await clock.advance(3000)
  assert.equal((await call()).status, 200)
  assert.equal(await gauge(), '0')
})
