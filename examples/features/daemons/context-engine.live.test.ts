import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createAdapter } from './context-engine.ts'
import { startTestLlama } from './llama-server.ts'

const ADMIN = 'an-admin-token-of-the-test'
const SUB = 'spiffe://plat.local/ns/default/agent/assistant/session'

interface Said {
  readonly status: number
  /** Tokens that were in the slot before; null without a response. */
  readonly reused: number | null
}

/** A gateway with a route to the adapter, over a server with this number of slots. */
async function setUp(t: TestContext, { slots = 2, ctxengine = {} }: { slots?: number; ctxengine?: object } = {}) {
  const dir = tempFolder()
  const llama = await startTestLlama(dir, slots)
  t.after(() => llama.close())
  const setup = { upstream: llama.url, slotDir: dir, apiKey: null }
  let server = await createAdapter(setup)
  const port = await listening(server)
  t.after(() => closed(server))
  const gateway = await startGatewayProcess({
    servers: {},
    config: {
      ctxengine: { upstream: `http://127.0.0.1:${port}/v1`, ...ctxengine },
      models: { r: { provider: 'ctxengine', model: 'words' } },
    },
    env: { PLAT_ADMIN_TOKEN: ADMIN },
  })
  t.after(() => gateway.close())
  const send = (
    session: string,
    texts: readonly string[],
    { claims = {}, ...body }: { claims?: object; stream?: boolean } = {},
    signal?: AbortSignal,
  ) => {
    const messages = texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    const mine = { plat_session: session, sub: `${SUB}/${session}`, scope: 'models:r', ...claims }
    return fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.issuer.token(mine)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages, ...body }),
      ...(signal && { signal }),
    })
  }
  const say = async (session: string, texts: readonly string[], own: { claims?: object } = {}): Promise<Said> => {
    const response = await send(session, texts, own)
    const { timings } = Object(await response.json())
    return { status: response.status, reused: timings?.cache_n ?? null }
  }
  const admin = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' }
    return (await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).status
  }
  const restart = async () => {
    await closed(server)
    server = await createAdapter(setup)
    await listening(server, '127.0.0.1', port)
  }
  return { llama, dir, gateway, send, say, admin, restart }
}

const ONCE = ['speak now of the sea']
const TWICE = [...ONCE, 'speak now of the sea', 'and of the land']

test('a session continues in the state of its context, and no other session begins with it', async (t) => {
  const { say, llama } = await setUp(t)
  assert.deepEqual(await say('s1', ONCE), { status: 200, reused: 0 })
  assert.deepEqual(await say('s1', TWICE), { status: 200, reused: 12 })
  assert.deepEqual(await say('s2', TWICE), { status: 200, reused: 0 })
  assert.deepEqual(
    llama.slots.map((tokens) => tokens.length),
    [22, 22],
  )
})

test('more sessions than slots: states are saved to files and restored', async (t) => {
  const { say, dir } = await setUp(t)
  const sessions = ['s1', 's2', 's3', 's4', 's5']
  for (const session of sessions) assert.equal((await say(session, [`I am ${session}`])).reused, 0, session)
  for (const session of sessions)
    assert.equal((await say(session, [`I am ${session}`, `I am ${session}`, 'who am I'])).reused, 8, session)
  assert.ok(readdirSync(dir).length >= 3)
})

test('a fork begins with the state of its parent, in a slot or in a file, and changes nothing of it', async (t) => {
  const { say } = await setUp(t)
  await say('s1', ONCE)
  const claims = { plat_parent_session: 's1' }
  assert.equal((await say('f1', TWICE, { claims })).reused, 12)
  assert.equal((await say('s1', [...ONCE, 'speak now of the sea', 'something else'])).reused, 12)
  for (const session of ['s3', 's4']) await say(session, ['x'])
  assert.equal((await say('f2', TWICE, { claims })).reused, 13)
})

test('the state of a revoked session is saved for an investigation, and a checkpoint is restored', async (t) => {
  const [quarantineSnapshotDir, checkpointDir] = [tempFolder(), tempFolder()]
  const { say, admin } = await setUp(t, { ctxengine: { quarantineSnapshotDir, checkpointDir } })
  await say('s1', ['a secret of s1'])
  const at = `/v1/contexts/${encodeURIComponent('default/assistant/s1')}`
  assert.equal(await admin(`${at}/checkpoint`, { name: 'before' }), 200)
  await say('s1', ['something entirely different'])
  assert.equal(await admin(`${at}/restore`, { name: 'before' }), 200)
  assert.equal((await say('s1', ['a secret of s1', 'a secret of s1', 'go on'])).reused, 10)
  assert.equal(await admin('/v1/revocations', { target: { session: 'default/assistant/s1' } }), 201)
  await until(() => readdirSync(quarantineSnapshotDir).length === 1, 'the saved state')
  const [name = ''] = readdirSync(quarantineSnapshotDir)
  assert.match(readFileSync(`${quarantineSnapshotDir}/${name}`, 'utf8'), /"secret","of","s1"/)
})

test('a streamed call holds its context: another call of the session is busy, one of another session is not', async (t) => {
  const { say, send, llama } = await setUp(t)
  const held = Promise.withResolvers<void>()
  llama.hold = held.promise
  const stream = await send('s1', ONCE, { stream: true })
  assert.equal(stream.status, 200)
  assert.equal((await say('s1', ONCE)).status, 429)
  llama.hold = null
  assert.equal((await say('s2', ONCE)).status, 200)
  held.resolve()
  assert.match(await stream.text(), /speak now of the sea[\s\S]*\[DONE\]/)
  assert.deepEqual(await say('s1', TWICE), { status: 200, reused: 12 })
  // A caller that leaves releases the context.
  llama.hold = new Promise(() => {})
  const stop = new AbortController()
  const left = await send('s1', ONCE, { stream: true }, stop.signal)
  assert.equal(left.status, 200)
  stop.abort()
  llama.hold = null
  await until(async () => (await say('s1', ONCE)).status === 200, 'the released context')
})

test('an adapter that was started again has lost its contexts: calls get new ones', async (t) => {
  const { say, restart, llama } = await setUp(t)
  await say('s1', ONCE)
  await restart()
  assert.deepEqual(
    llama.slots.map((tokens) => tokens.length),
    [0, 0],
  )
  assert.deepEqual(await say('s1', TWICE), { status: 200, reused: 0 })
})

test('requests without the key, without a context or with an invalid body are refused', async (t) => {
  const dir = tempFolder()
  const llama = await startTestLlama(dir, 1)
  t.after(() => llama.close())
  const server = await createAdapter({ upstream: llama.url, slotDir: dir, apiKey: 'the-key' })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  t.after(() => closed(server))
  const status = async (
    path: string,
    body: string,
    headers: Record<string, string> = { authorization: 'Bearer the-key' },
  ) => (await fetch(url + path, { method: 'POST', body, headers })).status
  assert.equal(await status('/chat/completions', '{}', {}), 401)
  assert.equal(await status('/chat/completions', '{}'), 400)
  const named = { authorization: 'Bearer the-key', 'x-context-id': '0'.repeat(32) }
  assert.equal(await status('/chat/completions', '{}', named), 409)
  assert.equal(await status('/chat/completions', '{', named), 400)
  assert.equal(await status('/contexts/../x/save', '{"path":"/tmp/x"}'), 404)
  assert.deepEqual(llama.slots, [[]])
})
