import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type ContextEngine, startContextEngine } from '@plat/testkit/context-engine'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { problemsWith } from '../../testing/configured.ts'
import { started, TOKEN } from '../../testing/started.ts'

const SUB = 'spiffe://plat.local/ns/default/agent/assistant/session'

/** A gateway with a route of provider `ctxengine`. */
async function setUp(t: TestContext, engine: ContextEngine, own: object = {}, route: object = {}) {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { gateway, issuer } = await started(t, {
    auditPath,
    modelPolicy: 'scope-only',
    ctxengine: { upstream: engine.url, ...own },
    models: { r: { provider: 'ctxengine', ...route } },
  })
  const say = async (content: string, session = 's1', claims: object = {}) => {
    const mine = { plat_session: session, sub: `${SUB}/${session}`, scope: 'models:r', ...claims }
    const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${issuer.token(mine)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
    })
    const body = JSON.parse(await response.text())
    return response.status === 200 ? body.choices[0].message.content : response.status
  }
  const admin = async (path: string, body: object) => {
    const response = await fetch(`${gateway.adminUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const series = async (name: string) => {
    const response = await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    const pattern = new RegExp(`^plat_gateway_ctxengine_${name.replace(/[{}"]/g, '\\$&')} (\\S+)$`, 'm')
    return Number(pattern.exec(await response.text())?.[1] ?? 0)
  }
  const ops = (op: string) => series(`context_ops_total{op="${op}"}`)
  const records = (kind: string) =>
    wholeLines(auditPath).flatMap((line) => {
      const { rec } = JSON.parse(line)
      return rec.kind === kind ? [rec] : []
    })
  return { say, admin, series, ops, records }
}

async function engineFor(t: TestContext, own: object = {}): Promise<ContextEngine> {
  const engine = await startContextEngine(own)
  t.after(() => engine.close())
  return engine
}

test('each session has its own context, created with its first call and used by later ones', async (t) => {
  // Shows D3.label.plat_gateway_ctxengine_context_ops_total.op.create.
  // Shows D3.ctxengine.upstream, D3.ctxengine.apiKeyFile, D3.route.provider.ctxengine, D3.metric.plat_gateway_ctxengine_contexts
  // and D3.metric.plat_gateway_ctxengine_context_ops_total.
  const engine = await engineFor(t, { apiKey: 'engine-key' })
  const apiKeyFile = join(tempFolder(), 'key')
  writeFileSync(apiKeyFile, 'engine-key')
  const { say, series, ops } = await setUp(t, engine, { apiKeyFile })
  assert.equal(await say('one'), 'one')
  assert.equal(await say('two'), 'one|two')
  assert.equal(await say('other', 's2'), 'other')
  assert.deepEqual([await series('contexts'), await ops('create')], [2, 2])
  // The names of sessions are not sent.
  assert.equal(
    engine.requests.some((request) => request.includes('s1')),
    false,
  )
  // Calls that begin together create one context.
  await Promise.all(['a', 'b', 'c'].map((text) => say(text, 's3')))
  assert.deepEqual([await ops('create'), engine.contexts.size], [3, 3])
})

test('a forked session begins with the context of its parent, and shares nothing afterwards', async (t) => {
  // Shows D3.label.plat_gateway_ctxengine_context_ops_total.op.fork.
  const engine = await engineFor(t)
  const { say, ops } = await setUp(t, engine)
  await say('parent')
  assert.equal(await say('child', 'f1', { plat_parent_session: 's1' }), 'parent|child')
  assert.equal(await say('again'), 'parent|again')
  assert.equal(await ops('fork'), 1)
  // A parent without a context gives its fork an empty one.
  assert.equal(await say('child', 'f2', { plat_parent_session: 'unknown' }), 'child')
  assert.deepEqual([await ops('create'), await ops('fork')], [2, 1])
})

test('an engine that lost a context gets the call once more, with a new context', async (t) => {
  // Shows D3.label.plat_gateway_ctxengine_context_ops_total.op.stale.
  const engine = await engineFor(t)
  const { say, ops } = await setUp(t, engine)
  await say('one')
  engine.lose()
  assert.equal(await say('two'), 'two')
  assert.deepEqual([await ops('stale'), await ops('create')], [1, 2])
  // One that never knows its contexts is no endless loop.
  engine.fault = (request, response) => {
    if (!request.endsWith('completions')) return false
    response.writeHead(409, { 'x-context-status': 'stale', 'content-type': 'application/json' }).end('{}')
    return true
  }
  assert.notEqual(await say('three'), 200)
  assert.equal(await ops('stale'), 2)
})

test('a busy, failing or unreachable engine refuses the call, and is counted', async (t) => {
  // Shows D3.label.plat_gateway_ctxengine_context_ops_total.op.busy, D3.label.plat_gateway_ctxengine_context_ops_total.op.error.
  const engine = await engineFor(t)
  const { say, ops } = await setUp(t, engine)
  const respond = (status: number) => (request: string, response: import('node:http').ServerResponse) => {
    if (!request.startsWith('PUT')) return false
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    return true
  }
  engine.fault = respond(429)
  assert.equal(await say('one'), 429)
  assert.equal(await ops('busy'), 1)
  engine.fault = respond(500)
  assert.equal(await say('one'), 502)
  engine.fault = (_, response) => {
    response.destroy()
    return true
  }
  assert.equal(await say('one'), 502)
  assert.equal(await ops('error'), 2)
  engine.fault = (request, response) => {
    if (request.startsWith('PUT')) return false
    response
      .writeHead(429, { 'x-context-status': 'busy', 'content-type': 'application/json' })
      .end('{"error":{"message":"busy"}}')
    return true
  }
  assert.equal(await say('one'), 429)
  assert.equal(await ops('busy'), 2)
  engine.fault = null
  assert.equal(await say('one'), 'one')
})

test('contexts are dropped by least recent use and when idle', async (t) => {
  // Shows D3.label.plat_gateway_ctxengine_context_ops_total.op.drop.
  // Shows D3.ctxengine.maxContexts and D3.ctxengine.contextIdleSeconds.
  const engine = await engineFor(t)
  const { say, ops, series } = await setUp(t, engine, { maxContexts: 2 })
  for (const session of ['s1', 's2', 's1', 's3']) await say('x', session)
  await until(async () => (await ops('drop')) === 1, 'the least recently used context is dropped')
  assert.equal(await say('y', 's1'), 'x|x|y')
  assert.equal(await say('y', 's2'), 'y')
  assert.ok((await series('contexts')) <= 2)
  const idle = await setUp(t, engine, { contextIdleSeconds: 1 })
  const before = engine.contexts.size
  await idle.say('x', 's9')
  await until(async () => (await idle.ops('drop')) === 1, 'an idle context is dropped')
  assert.deepEqual([await idle.series('contexts'), engine.contexts.size], [0, before])
})

test('without contexts calls are relayed as they are', async (t) => {
  // Shows D3.ctxengine.stateless.
  const engine = await engineFor(t)
  const { say } = await setUp(t, engine, { stateless: true })
  assert.deepEqual([await say('one'), await say('two')], ['one', 'two'])
  assert.deepEqual([engine.contexts.size, [...new Set(engine.requests)]], [0, ['POST /v1/chat/completions']])
})

test('the context of a revoked session is saved and dropped, that of a suspended one stays', async (t) => {
  // Shows D3.ctxengine.quarantineSnapshotDir.
  const engine = await engineFor(t)
  const quarantineSnapshotDir = tempFolder()
  const { say, admin, records, ops } = await setUp(t, engine, { quarantineSnapshotDir })
  for (const session of ['s1', 's2', 's3']) await say(`secret of ${session}`, session)
  await admin('/v1/revocations', { target: { session: 'default/assistant/s2' }, mode: 'suspend' })
  await admin('/v1/revocations', { target: { session: 'default/assistant/s1' }, reason: 'injected' })
  await until(() => records('alert').some(({ alert }) => alert === 'context.quarantined'), 'the quarantine is recorded')
  const [alert] = records('alert')
  assert.equal(alert.session, 's1')
  assert.equal(readFileSync(alert.file, 'utf8'), '["secret of s1"]')
  await until(async () => (await ops('drop')) === 1, 'the context is dropped')
  assert.deepEqual([readdirSync(quarantineSnapshotDir).length, engine.contexts.size], [1, 2])
})

test('contexts are saved and loaded as checkpoints, in checkpointDir only', async (t) => {
  // Shows D3.ctxengine.checkpointDir.
  const engine = await engineFor(t)
  const none = await setUp(t, engine)
  await none.say('one')
  const id = encodeURIComponent('default/assistant/s1')
  for (const action of ['checkpoint', 'restore'])
    assert.equal((await none.admin(`/v1/contexts/${id}/${action}`, { name: 'a' })).status, 409)
  const checkpointDir = tempFolder()
  const { say, admin, records } = await setUp(t, engine, { checkpointDir })
  await say('first', 's5')
  const mine = `/v1/contexts/${encodeURIComponent('default/assistant/s5')}`
  const { status, body } = await admin(`${mine}/checkpoint`, { name: 'before' })
  assert.deepEqual([status, body.name, typeof body.sha256], [200, 'before', 'string'])
  await say('second', 's5')
  assert.equal((await admin(`${mine}/restore`, { name: 'before' })).status, 200)
  assert.equal(await say('third', 's5'), 'first|third')
  assert.deepEqual(
    records('admin').flatMap(({ action }) => (String(action).startsWith('context.') ? [action] : [])),
    ['context.checkpoint', 'context.restore'],
  )
  assert.equal((await admin(`${mine}/restore`, { name: 'missing' })).status, 404)
  for (const name of ['../x', '', 'a/b', '.', 'a'.repeat(65)])
    assert.equal((await admin(`${mine}/checkpoint`, { name })).status, 400, name)
  assert.equal(
    (await admin(`/v1/contexts/${encodeURIComponent('default/assistant/unknown')}/checkpoint`, { name: 'a' })).status,
    404,
  )
  assert.equal((await admin('/v1/contexts/s5/checkpoint', { name: 'a' })).status, 400)
  assert.deepEqual(readdirSync(checkpointDir), ['default.assistant.s5.before.context'])
})

test("the engine's ledgers are anchored, and calls are denied where one must verify and does not", async (t) => {
  // Shows D3.ctxengine.auditAnchors.name, D3.ctxengine.auditAnchors.file, D3.ctxengine.auditAnchors.intervalSeconds,
  // D3.ctxengine.auditAnchors.continuation, D3.ctxengine.auditAnchors.failClosed, D3.metric.plat_gateway_ctxengine_audit_verified
  // and D3.metric.plat_gateway_ctxengine_audit_head_seq.
  const dir = tempFolder()
  const ledgerPath = join(dir, 'engine.jsonl')
  const first = await engineFor(t, { ledgerPath })
  const open = await setUp(t, first, { auditAnchors: [{ name: 'a', file: ledgerPath, intervalSeconds: 1 }] })
  // A ledger that does not exist yet does not verify, and holds nothing up without failClosed.
  assert.equal(await open.say('one'), 'one')
  await until(async () => (await open.series('audit_verified{anchor="a"}')) === 1, 'the ledger verifies')
  await until(async () => (await open.series('audit_head_seq{anchor="a"}')) >= 1, 'its head is anchored')
  assert.ok(open.records('anchor').some(({ source, name }) => source === 'ctxengine' && name === 'a'))
  const good = readFileSync(ledgerPath, 'utf8')
  const rest = join(dir, 'rest.jsonl')
  writeFileSync(rest, good.slice(good.indexOf('\n') + 1))
  const closed = await setUp(t, first, {
    auditAnchors: [
      { name: 'a', file: ledgerPath, intervalSeconds: 1, failClosed: true },
      { name: 'rest', file: rest, intervalSeconds: 1, continuation: true },
      { name: 'strict', file: rest, intervalSeconds: 1 },
    ],
  })
  assert.deepEqual(
    [await closed.series('audit_verified{anchor="rest"}'), await closed.series('audit_verified{anchor="strict"}')],
    [1, 0],
  )
  assert.equal(await closed.say('one', 's9'), 'one')
  writeFileSync(ledgerPath, good.replace('PUT', 'GET'))
  await until(async () => (await closed.series('audit_verified{anchor="a"}')) === 0, 'it no longer verifies')
  assert.equal(await closed.say('two', 's9'), 503)
  assert.equal(existsSync(ledgerPath), true)
})

test('a route needs an address, and the key of the engine goes to no other', async (t) => {
  assert.deepEqual(problemsWith({ models: { r: { provider: 'ctxengine' } } }), [
    'models.r.upstream: is required without ctxengine.upstream',
  ])
  const [engine, other] = [await engineFor(t), await engineFor(t, { apiKey: 'engine-key' })]
  const apiKeyFile = join(tempFolder(), 'key')
  writeFileSync(apiKeyFile, 'engine-key')
  const { say } = await setUp(t, engine, { apiKeyFile }, { upstream: other.url })
  assert.equal(await say('one'), 502)
  assert.deepEqual([engine.requests.length, other.contexts.size], [0, 0])
})
