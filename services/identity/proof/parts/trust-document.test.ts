import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { TrustDocument } from './trust-document.ts'

const MINUTE_MS = 60_000

/** A document at a URL whose responses the test controls. */
function setUp() {
  const clock = new TestClock()
  const origin = { status: 200, text: 'one', fetches: 0 }
  const none = () => assert.fail('only small documents are fetched')
  const dialer: Dialer = {
    client: none,
    connect: none,
    close: () => {},
    async fetchBytes() {
      origin.fetches++
      return { status: origin.status, headers: {}, bytes: Buffer.from(origin.text) }
    },
  }
  const parse = (bytes: Uint8Array) => Buffer.from(bytes).toString()
  const document = new TrustDocument('https://keys.example/set', parse, { clock, dialer, log: silentLog })
  return { clock, origin, document }
}

test('a document is cached for five minutes, then fetched again', async () => {
  const { clock, origin, document } = setUp()
  assert.deepEqual([await document.read(), await document.read(), origin.fetches], ['one', 'one', 1])
  origin.text = 'two'
  await clock.advance(5 * MINUTE_MS - 1)
  assert.equal(await document.read(), 'one')
  await clock.advance(1)
  assert.deepEqual([await document.read(), origin.fetches], ['two', 2])
})

test('an unknown key causes a fetch, at most every ten seconds, shared by all callers', async () => {
  const { clock, origin, document } = setUp()
  await document.read()
  await Promise.all(Array.from({ length: 20 }, () => document.readAgain()))
  assert.equal(origin.fetches, 1)
  await clock.advance(10_000)
  origin.text = 'two'
  const answers = await Promise.all(Array.from({ length: 20 }, () => document.readAgain()))
  assert.deepEqual([new Set(answers), origin.fetches], [new Set(['two']), 2])
})

test('while its origin is down a document is used for an hour, and then no longer', async () => {
  const { clock, origin, document } = setUp()
  await document.read()
  origin.status = 500
  await clock.advance(60 * MINUTE_MS - 1)
  assert.equal(await document.read(), 'one')
  await clock.advance(1)
  assert.equal(await document.read(), null)
  assert.equal(await document.readAgain(), null)
  origin.status = 200
  await clock.advance(10_000)
  assert.equal(await document.read(), 'one')
})
