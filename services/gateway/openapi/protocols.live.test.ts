import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startContextEngine } from '@plat/testkit/context-engine'
import { tempFolder } from '@plat/testkit/local'
import { startSandboxDaemon } from '@plat/testkit/sandbox-daemon'
import { until } from '@plat/testkit/until'
import { documented } from '../testing/documented.ts'
import { started, TOKEN } from '../testing/started.ts'

const SUB = 'spiffe://plat.local/ns/default/agent/assistant/session'
const CONTEXTS = { one: '1'.repeat(32), other: '2'.repeat(32) }

/** A gateway with a route to the reference engine, by way of a server that compares all messages with the document. */
async function setUpEngine(t: TestContext) {
  const engine = await startContextEngine({ apiKey: 'engine-key' })
  t.after(() => engine.close())
  const server = await documented(t, 'context-engine.openapi.json', new URL(engine.url).origin, '/v1')
  const dir = tempFolder()
  const apiKeyFile = join(dir, 'key')
  writeFileSync(apiKeyFile, 'engine-key')
  const { gateway, issuer } = await started(t, {
    ctxengine: { upstream: `${server.url}/v1`, apiKeyFile, quarantineSnapshotDir: dir, checkpointDir: dir },
    models: { r: { provider: 'ctxengine' } },
  })
  const say = async (session: string, claims: object = {}) => {
    const token = issuer.token({ plat_session: session, sub: `${SUB}/${session}`, scope: 'models:r', ...claims })
    const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
    })
    await response.text()
    return response.status
  }
  const admin = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    return (await fetch(`${gateway.adminUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).status
  }
  return { engine, server, dir, say, admin }
}

test('the gateway and the reference engine speak as the document of context engines says, in every operation and response', async (t) => {
  const { engine, server, dir, say, admin } = await setUpEngine(t)
  // Requests of the gateway: create, chat, fork, a lost context, save, load, and those of a revocation.
  assert.equal(await say('s1'), 200)
  assert.equal(await say('f1', { plat_parent_session: 's1' }), 200)
  engine.lose()
  assert.equal(await say('s1'), 200)
  assert.equal(await say('f2', { plat_parent_session: 'unknown' }), 200)
  const context = `/v1/contexts/${encodeURIComponent('default/assistant/s1')}`
  assert.equal(await admin(`${context}/checkpoint`, { name: 'a' }), 200)
  assert.equal(await admin(`${context}/restore`, { name: 'a' }), 200)
  assert.equal(await admin(`${context}/restore`, { name: 'none' }), 404)
  await admin('/v1/revocations', { target: { session: 'default/assistant/s1' } })
  await until(() => engine.requests.some((request) => request.startsWith('DELETE')), 'the dropped context')
  assert.deepEqual(server.problems, [])
  // Requests and responses that this gateway does not cause.
  const direct = async (method: string, path: string, body: object | null, headers: Record<string, string> = {}) => {
    const init = {
      method,
      headers: { authorization: 'Bearer engine-key', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    }
    return (await fetch(`${server.url}/v1${path}`, init)).status
  }
  const at = `/contexts/${CONTEXTS.one}`
  assert.deepEqual([await direct('PUT', at, {}), await direct('PUT', at, {})], [201, 200])
  assert.equal(await direct('POST', `/contexts/${CONTEXTS.other}/save`, { path: join(dir, 'x') }), 404)
  assert.equal(await direct('DELETE', `/contexts/${CONTEXTS.other}`, null), 404)
  const held = Promise.withResolvers<void>()
  engine.hold = held.promise
  const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }] }
  const running = direct('POST', '/chat/completions', chat, { 'x-context-id': CONTEXTS.one })
  const isBusy = async () => (await direct('PUT', `/contexts/${CONTEXTS.other}`, { from: CONTEXTS.one })) === 429
  await until(
    async () => (await isBusy()) || (await direct('DELETE', `/contexts/${CONTEXTS.other}`, null)) === 0,
    'use',
  )
  assert.equal(await direct('POST', '/chat/completions', chat, { 'x-context-id': CONTEXTS.one }), 429)
  held.resolve()
  assert.equal(await running, 200)
  assert.deepEqual([server.problems, server.unseen()], [[], []])
})

test('the gateway and the reference daemon speak as the document of sandbox daemons says, in every operation and response', async (t) => {
  const dir = tempFolder()
  const daemon = await startSandboxDaemon({ ledgerPath: join(dir, 'sbxd.jsonl'), token: 'secret' })
  t.after(() => daemon.close())
  const server = await documented(t, 'sandbox-daemon.openapi.json', daemon.url)
  const tokenFile = join(dir, 'token')
  writeFileSync(tokenFile, 'secret')
  const { gateway, issuer } = await started(t, {
    sbxd: { url: server.url, tokenFile, mirrorDecisions: true, anchorIntervalSeconds: 1 },
  })
  await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${issuer.token()}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}',
  })
  await until(() => daemon.decisions.length > 0, 'the mirrored decision')
  await until(() => !server.unseen().some((one) => /^(anchor|lines) 200$/.test(one)), 'the anchor')
  assert.deepEqual(server.problems, [])
  const direct = async (method: string, path: string, body: object | null, token = 'secret') => {
    const init = { method, headers: { authorization: `Bearer ${token}` }, ...(body && { body: JSON.stringify(body) }) }
    return (await fetch(server.url + path, init)).status
  }
  const anchor = { ledgerId: 'l', seq: 1, hash: 'a'.repeat(64) }
  assert.equal(await direct('POST', '/v1/decisions', { ledgerId: 'l' }), 400)
  assert.equal(await direct('POST', '/v1/decisions', { ledgerId: 'l', decisions: [] }, 'wrong'), 401)
  assert.equal(await direct('POST', '/v1/ledger/anchors', anchor, 'wrong'), 401)
  assert.equal(await direct('GET', '/v1/ledger/lines?from=0&limit=10', null, 'wrong'), 401)
  assert.deepEqual([server.problems, server.unseen()], [[], []])
})
