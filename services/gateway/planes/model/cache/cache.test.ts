import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { type Identity, isDenial, type Reply, type Target } from '../../../call/index.ts'
import { testCall, testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { testMetrics } from '../../../testing/metrics.ts'
import { ModelFrame } from '../frame.ts'
import { bodyOf, endpointAt } from '../testing.ts'
import { ResponseCache } from './cache.ts'

const KIB = 1024
const target: Target = { ...testTarget, kind: 'model', key: 'r', server: 'llm/r', tool: 'm', trust: 'trusted' }

function cacheOf(maxBytes: number) {
  const clock = new TestClock()
  const revoked = new Set<string>()
  const isRevoked = ({ session }: Identity) => revoked.has(session)
  const cache = new ResponseCache({ maxBytes, clock, metrics: testMetrics(), isRevoked })
  const endpoint = endpointAt('http://one.example/v1')
  let sent = 0
  /** Returns whether a caller gets a stored response; a new one has `size` bytes. */
  const isHit = async (
    who: Partial<Identity>,
    content: string,
    { size = KIB, ttlMs = 60_000, endpoints = [endpoint] } = {},
  ) => {
    const body = bodyOf({ model: 'm', messages: [{ role: 'user', content }] })
    const identity = { ...testIdentity, ...who }
    const call = testCall(
      { identity, target },
      { operation: 'model.generate', method: 'chat/completions', server: 'r', name: 'm', body },
    )
    const before = sent
    const send = async (): Promise<Reply> => {
      sent++
      const bytes = Buffer.from(JSON.stringify({ choices: [], padding: 'x'.repeat(size) }))
      return { kind: 'frames', head: { status: 200, headers: {} }, frames: [ModelFrame.body(bytes)], attempts: [] }
    }
    const reply = await cache.reply(call, { policy: { ttlMs, scope: 'session' }, endpoints, first: endpoint, send })
    assert.ok(!isDenial(reply))
    return sent === before
  }
  return { clock, cache, isHit, revoked }
}

test('an agent that stores much replaces only what it has stored itself', async () => {
  const { isHit } = cacheOf(256 * KIB)
  assert.equal(await isHit({ agent: 'quiet', session: 's' }, 'question'), false)
  for (let count = 0; count < 200; count++)
    await isHit({ agent: 'greedy', session: `s${count % 8}` }, `${count}`, { size: 8 * KIB })
  assert.equal(await isHit({ agent: 'quiet', session: 's' }, 'question'), true)
  assert.equal(await isHit({ agent: 'greedy', session: 's7' }, '199'), true)
  assert.equal(await isHit({ agent: 'greedy', session: 's0' }, '0'), false)
})

test('a session has a smaller share than its agent, and a response larger than that is not stored', async () => {
  const { isHit } = cacheOf(256 * KIB)
  assert.equal(await isHit({ session: 'other' }, 'question'), false)
  for (let count = 0; count < 40; count++) await isHit({ session: 'greedy' }, `${count}`, { size: 4 * KIB })
  assert.equal(await isHit({ session: 'other' }, 'question'), true)
  await isHit({ session: 'large' }, 'large', { size: 40 * KIB })
  assert.equal(await isHit({ session: 'large' }, 'large'), false)
})

test('a response is stored no longer than the route states now', async () => {
  const { clock, isHit } = cacheOf(256 * KIB)
  await isHit({}, 'question')
  await clock.advance(30_000)
  assert.equal(await isHit({}, 'question'), true)
  assert.equal(await isHit({}, 'question', { ttlMs: 20_000 }), false, 'the time was made shorter')
  await clock.advance(60_000)
  assert.equal(await isHit({}, 'question'), false)
})

test('a response of an endpoint that the call must not be sent to is not sent', async () => {
  const { isHit } = cacheOf(256 * KIB)
  await isHit({}, 'question')
  assert.equal(await isHit({}, 'question', { endpoints: [endpointAt('http://two.example/v1')] }), false)
})

test('the class and the labels of a call are those of its stored response', async () => {
  const { cache } = cacheOf(256 * KIB)
  const body = bodyOf({ model: 'm', messages: [] })
  const endpoint = endpointAt('http://one.example/v1')
  let sent = 0
  const send = async (): Promise<Reply> => {
    sent++
    return {
      kind: 'frames',
      head: { status: 200, headers: {} },
      frames: [ModelFrame.body(Buffer.from('{}'))],
      attempts: [],
    }
  }
  for (const dataClass of ['internal', 'confidential', 'internal', 'confidential'] as const) {
    const call = testCall(
      { identity: testIdentity, target: { ...target, dataClass } },
      { operation: 'model.generate', method: 'chat/completions', server: 'r', name: 'm', body },
    )
    await cache.reply(call, { policy: { ttlMs: 1000, scope: 'route' }, endpoints: [endpoint], first: endpoint, send })
  }
  assert.equal(sent, 2)
})

test('expired responses and those of revoked callers are removed without a call', async () => {
  const { clock, cache, isHit, revoked } = cacheOf(256 * KIB)
  await isHit({ session: 'gone' }, 'question')
  await isHit({ session: 'short' }, 'question', { ttlMs: 5_000 })
  await isHit({ session: 'stays' }, 'question')
  assert.equal(cache.size, 3)
  revoked.add('gone')
  await clock.advance(10_000)
  assert.equal(cache.size, 1)
  assert.equal(await isHit({ session: 'stays' }, 'question'), true)
})
