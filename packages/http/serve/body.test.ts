import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { readBody } from './body.ts'

/** Reads a body that the test feeds; `ended` records when and how reading ended. */
function reading(clock: TestClock, timeoutMs: number) {
  const source = new Readable({ read() {} })
  const ended: string[] = []
  void readBody(source, { maxBytes: 10, timeoutMs, clock, headers: {} }).then((result) => {
    ended.push(`${result instanceof Uint8Array ? Buffer.from(result).toString() : result.why} ${clock.monotonic()}`)
  })
  return { source, ended }
}

test('each body has its own deadline, whenever it began and whatever else is read', async () => {
  const clock = new TestClock()
  const long = reading(clock, 1000)
  const whole = reading(clock, 300)
  await clock.advance(100)
  const short = reading(clock, 200)
  const same = reading(clock, 900)
  whole.source.push('all of it')
  whole.source.push(null)
  for (let step = 0; step < 100; step++) await clock.advance(10)
  assert.deepEqual(short.ended, ['timeout 300'])
  assert.deepEqual([long.ended, same.ended], [['timeout 1000'], ['timeout 1000']])
  assert.match(whole.ended.join(), /^all of it 1[01]0$/)
  // The previous body is done: the deadline of the next one counts from its own beginning.
  const next = reading(clock, 50)
  await clock.advance(40)
  assert.deepEqual(next.ended, [])
  await clock.advance(10)
  assert.deepEqual(next.ended, ['timeout 1150'])
})

test('a body of very many tiny chunks is refused, one of many reasonable chunks is not', async () => {
  const clock = new TestClock()
  const read = (chunk: string, count: number) => {
    const source = Readable.from(Array.from({ length: count }, () => Buffer.from(chunk)))
    return readBody(source, { maxBytes: 1_000_000, timeoutMs: 1000, clock, headers: {} })
  }
  assert.deepEqual(await read('x', 10_000), { kind: 'fault', why: 'chunks' })
  const [tiny, fair] = [await read('x', 8000), await read('x'.repeat(20), 10_000)]
  assert.ok(tiny instanceof Uint8Array && fair instanceof Uint8Array)
  assert.deepEqual([tiny.length, fair.length], [8000, 200_000])
  assert.ok(tiny.buffer.byteLength <= 2 * tiny.length + 64 * 1024)
})
