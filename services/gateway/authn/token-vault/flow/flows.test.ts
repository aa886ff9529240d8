import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { poolTable, systemIds, TestClock } from '@plat/core'
import { memoryOnceSets } from '@plat/state'
import { createSealer } from '../../../planes/mcp/seal/seal.ts'
import { browserCookie } from './browser.ts'
import { Flows } from './flows.ts'

function flowsOf(ttlMs = 600_000) {
  const clock = new TestClock()
  const ids = systemIds(clock)
  const sealer = createSealer([randomBytes(32)], clock, ids)
  return { clock, flows: new Flows({ sealer, once: memoryOnceSets(clock), clock, ids, ttlMs }) }
}

test('a step opens in its browser, for its step, until it expires, and can be used once', async () => {
  // Shows D3.tokenVault.flowTTLSeconds.
  const { clock, flows } = flowsOf(600_000)
  const [mine, theirs] = [flows.secret(), flows.secret()]
  const flow = flows.begin('hub')
  const state = flows.seal('login', mine, flow)
  assert.deepEqual(flows.open('login', mine, state), flow)
  assert.equal(flows.open('login', theirs, state), null)
  assert.equal(flows.open('consent', mine, state), null)
  for (const changed of ['', state.slice(1), `${state}A`, state.replace('p1.', 'p2.')]) {
    assert.equal(flows.open('login', mine, changed), null)
  }
  assert.equal(await flows.spend(flow, 'ada'), true)
  assert.equal(await flows.spend(flow, 'ada'), false)
  clock.advance(599_999)
  assert.deepEqual(flows.open('login', mine, state), flow)
  clock.advance(1)
  assert.equal(flows.open('login', mine, state), null)
})

test('a user who completes flows without end uses up one share, and another user connects', async () => {
  const { clock, flows } = flowsOf(600_000)
  const share = poolTable.connect_flows.shares[0].max
  for (let n = 0; n < share; n++) assert.equal(await flows.spend(flows.begin('hub'), 'greedy'), true)
  assert.equal(await flows.spend(flows.begin('hub'), 'greedy'), false)
  assert.equal(await flows.spend(flows.begin('hub'), 'modest'), true)
  await clock.advance(600_000)
  assert.equal(await flows.spend(flows.begin('hub'), 'greedy'), true)
})

test('the next step has new secrets and the same expiry', () => {
  const { clock, flows } = flowsOf(600_000)
  const first = flows.begin('hub')
  clock.advance(500_000)
  const next = flows.next(first, { user: 'ada', login: null })
  for (const secret of ['id', 'nonce', 'verifier'] as const) {
    assert.match(next[secret], /^[A-Za-z0-9_-]{43}$/)
    assert.notEqual(next[secret], first[secret])
  }
  assert.deepEqual([next.user, next.provider, next.expiresAt], ['ada', 'hub', first.expiresAt])
})

test('only well-formed cookies are read', () => {
  const cookie = browserCookie({ isSecure: true, ttlSeconds: 600 })
  const value = flowsOf().flows.secret()
  assert.equal(cookie.read(`a=b; __Host-plat-connect=${value}; c=d`), value)
  for (const header of [
    undefined,
    '',
    `plat-connect=${value}`,
    `x__Host-plat-connect=${value}`,
    `__Host-plat-connect=${value}x`,
    '__Host-plat-connect=',
  ]) {
    assert.equal(cookie.read(header), null)
  }
})
