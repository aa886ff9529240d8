import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { createSealer } from '../../planes/mcp/seal/seal.ts'
import { Flows, LINK_MS } from './flows.ts'

const LOGIN_MS = 600_000
const wanted = { redirectURI: 'https://console.example/console/callback', to: '/console/', acr: '', maxAge: null }

function setUp() {
  const clock = new TestClock()
  const ids = systemIds(clock)
  const flows = new Flows({ sealer: createSealer([randomBytes(32)], clock, ids), clock, ids })
  return { clock, flows }
}

test('a link can be used for a minute, and not later', async () => {
  const { clock, flows } = setUp()
  const { code, until } = flows.mint()
  await clock.advance(LINK_MS - 1)
  assert.equal(flows.link(code)?.until, until)
  await clock.advance(1)
  assert.equal(flows.link(code), null)
})

test('a login can be completed for ten minutes, by the browser that began it, and not later', async () => {
  const { clock, flows } = setUp()
  const { state, nonce } = flows.begin('browser', wanted)
  await clock.advance(LOGIN_MS - 1)
  assert.equal(flows.open('browser', state)?.nonce, nonce)
  assert.equal(flows.open('another', state), null)
  await clock.advance(1)
  assert.equal(flows.open('browser', state), null)
})

test('the state of a login is no link, and the code of a link no login', () => {
  const { flows } = setUp()
  assert.equal(flows.link(flows.begin('', wanted).state), null)
  assert.equal(flows.open('', flows.mint().code), null)
})
