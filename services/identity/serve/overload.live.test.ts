import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { Overload, silentLog } from '@plat/process'
import { base, startTestBroker } from '../testing/broker.ts'

test('an overloaded broker issues nothing, verifies and answers probes, and issues again afterwards', async (t) => {
  const clock = new TestClock()
  let memory = 0.2
  const load = { memory: () => memory, delayMs: () => 50, collect() {}, close() {} }
  const broker = await startTestBroker(t, { overload: new Overload({ clock, log: silentLog, load }) })
  const { token } = await broker.mint()

  memory = 0.95
  await clock.advance(3000)
  const minted = await broker.post('/v1/token', base)
  assert.deepEqual([minted.status, minted.headers.get('retry-after')], [503, '2'])
  assert.deepEqual(minted.body, { error: 'the service is overloaded: try again later' })
  const exchanged = await broker.exchange({ subject_token: token })
  assert.deepEqual([exchanged.status, exchanged.body.error], [503, 'temporarily_unavailable'])
  assert.equal((await broker.bind(token, null)).status, 503)
  assert.equal((await broker.verify(token)).valid, true)
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    assert.equal((await fetch(broker.identity.url + path)).status, 200, path)
  }

  memory = 0.2
  await clock.advance(3000)
  assert.equal((await broker.post('/v1/token', base)).status, 200)
})
