import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base32, systemIds, TestClock } from './index.ts'

test('an id is a UUIDv7 whose first 48 bits are the time', () => {
  const clock = new TestClock(0x0123456789ab)
  const ids = systemIds(clock)
  assert.match(ids.uuid(), /^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('all four variants of a UUIDv7 occur, and every other digit is random', () => {
  const ids = systemIds(new TestClock())
  const made = Array.from({ length: 1000 }, () => ids.uuid())
  const digitsAt = (at: number) => [...new Set(made.map((id) => id.charAt(at)))].sort().join('')
  assert.equal(digitsAt(19), '89ab')
  for (const at of [15, 16, 17, 20, 21, 22, 24, 30, 35]) assert.equal(digitsAt(at), '0123456789abcdef')
})

test('ids are unique and sort by time', async () => {
  const clock = new TestClock()
  const ids = systemIds(clock)
  const made: string[] = []
  for (let step = 0; step < 3; step++) {
    made.push(...Array.from({ length: 500 }, () => ids.uuid()))
    await clock.advance(1)
  }
  assert.equal(new Set(made).size, made.length)
  const times = made.map((id) => id.slice(0, 13))
  assert.deepEqual(times, [...times].sort())
})

test('no id repeats random digits of the previous one', () => {
  const ids = systemIds(new TestClock())
  let shared = 0
  let before = ids.uuid().slice(-12)
  for (let count = 0; count < 1000; count++) {
    const id = ids.uuid().replaceAll('-', '')
    for (let at = 0; at + 5 <= before.length; at++) if (id.slice(-15).includes(before.slice(at, at + 5))) shared++
    before = id.slice(-12)
  }
  // Five equal digits occur by chance in about one of ten thousand pairs.
  assert.ok(shared < 10, `${shared}`)
})

test('random bytes have the requested length and differ', () => {
  const ids = systemIds(new TestClock())
  assert.equal(ids.random(32).length, 32)
  assert.notDeepEqual(ids.random(32), ids.random(32))
})

test('base32 matches the vectors of RFC 4648 in lower case without padding', () => {
  const vectors = {
    '': '',
    f: 'my',
    fo: 'mzxq',
    foo: 'mzxw6',
    foob: 'mzxw6yq',
    fooba: 'mzxw6ytb',
    foobar: 'mzxw6ytboi',
  }
  for (const [text, encoded] of Object.entries(vectors)) assert.equal(base32(Buffer.from(text)), encoded)
})
