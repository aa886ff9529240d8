import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { Overload, silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
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
  const overload = new Overload({
    clock,
    log: silentLog,
    load: { memory: () => load.memory, delayMs: () => load.delayMs, collect() {}, close() {} },
  })
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

test('an overloaded gateway accepts what ends work: cancellations, and the end of a session', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const body = { jsonrpc: '2.0', id: 1, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: {} } }
    const head = { 'content-type': 'application/json', 'mcp-session-id': 's1' }
    if (request.body.includes('"initialize"')) response.writeHead(200, head).end(JSON.stringify(body))
    else response.writeHead(202).end()
  })
  const overload = { active: false, close() {} }
  const routesFile = path.join(tempFolder(), 'agents.json')
  await writeFile(routesFile, JSON.stringify({ version: 1, agents: {} }))
  const config = { upstreams: { notes: upstream.url }, a2a: { routesFile } }
  const { gateway, issuer } = await started(t, config, false, { overload })
  const authorization = `Bearer ${issuer.token({ scope: 'tools:notes' })}`
  const send = (path: string, method: string, body?: object, more: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      method,
      headers: {
        authorization,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...more,
      },
      ...(body !== undefined && { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }),
    })
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const opened = await send('/mcp/notes', 'POST', { id: 1, method: 'initialize', params: initialize })
  assert.equal(opened.status, 200, await opened.text())
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }

  overload.active = true
  const cancelled = { method: 'notifications/cancelled', params: { requestId: 7, reason: 'it takes too long' } }
  assert.equal((await send('/mcp/notes', 'POST', cancelled, session)).status, 202)
  assert.match(upstream.received.at(-1)?.body ?? '', /cancelled/)
  assert.equal((await send('/mcp/notes', 'DELETE', undefined, session)).status, 202)
  assert.equal(upstream.received.at(-1)?.method, 'DELETE')
  const count = upstream.received.length

  const refused = [
    await send('/mcp/notes', 'POST', { id: 2, method: 'ping' }, session),
    await send('/mcp/notes', 'POST', { ...cancelled, params: { requestId: 7, reason: 'x'.repeat(4096) } }, session),
    await send('/mcp/notes', 'GET', undefined, session),
    await send(
      '/a2a/default/helper',
      'POST',
      { id: 1, method: 'GetTask', params: { id: 't' } },
      { 'a2a-version': '1.0' },
    ),
  ]
  for (const response of refused) {
    assert.equal(response.status, 503)
    assert.match(await response.text(), /overloaded/i)
  }
  assert.equal(upstream.received.length, count)
  const task = { id: 1, method: 'CancelTask', params: { id: 't' } }
  const judged = await send('/a2a/default/helper', 'POST', task, { 'a2a-version': '1.0' })
  assert.doesNotMatch(await judged.text(), /overloaded/i)
})
