import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { until } from '@plat/testkit/until'
import { configWith } from '../../testing/configured.ts'
import type { Delivery } from './receivers/receiver.ts'
import { ScriptedReceiver, setUpSinks } from './testing/fixture.ts'

const upTo = (last: number) => Array.from({ length: last + 1 }, (_, seq) => seq)
const down: Delivery = { kind: 'failed', reason: 'unreachable' }

test('every record is delivered once and in order, in batches of the configured size', async (t) => {
  // Shows D3.auditSinks.batchSize.
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(25)
  const receiver = new ScriptedReceiver()
  const { counted } = await fixture.sink(receiver, { batchSize: 10 })
  await until(() => receiver.accepted.length === last + 1, 'all records')
  assert.deepEqual(receiver.accepted, upTo(last))
  assert.deepEqual(
    receiver.batches.map((batch) => batch.length),
    [10, 10, 6],
  )
  const next = await fixture.fill(3)
  await until(() => receiver.accepted.length === next + 1, 'records that were written later')
  await until(() => counted.limit === next + 1, 'all of them counted')
  assert.deepEqual(receiver.accepted, upTo(next))
  assert.deepEqual([counted.lagging, counted.failures, counted.dead], [0, 0, 0])
})

test('a delivery holds 100 records by default', async (t) => {
  // Shows D3.limit.sinkBatch.
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(120)
  const receiver = new ScriptedReceiver()
  const [siem] = configWith({ auditSinks: [{ name: 'siem', type: 'jsonl', path: '/siem' }] }).auditSinks
  await fixture.sink(receiver, { batchSize: siem?.batchSize ?? assert.fail() })
  await until(() => receiver.accepted.length === last + 1, 'all records')
  assert.deepEqual(
    receiver.batches.map((batch) => batch.length),
    [100, last + 1 - 100],
  )
})

test('a delivery stays within its bytes, with at least one record', async (t) => {
  // Shows D3.auditSinks.maxBatchBytes.
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(6)
  const receiver = new ScriptedReceiver()
  const two = fixture.lines().slice(1, 3).join('').length
  await fixture.sink(receiver, { maxBatchBytes: two + 10 })
  await until(() => receiver.accepted.length === last + 1, 'all records')
  assert.deepEqual(receiver.accepted, upTo(last))
  assert.ok(receiver.batches.every((batch) => batch.length <= 2))
  const narrow = new ScriptedReceiver()
  await fixture.sink(narrow, { name: 'narrow', maxBatchBytes: 1 })
  await until(() => narrow.accepted.length === last + 1, 'all records again')
  assert.ok(narrow.batches.every((batch) => batch.length === 1))
})

test('while a receiver is down its records wait in the ledger, with exponential backoff', async (t) => {
  // Shows D3.event.sinksStreamed.
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(10)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  const at: number[] = []
  receiver.answers = () => {
    at.push(clock.now())
    return down
  }
  const { counted } = await fixture.sink(receiver, {}, clock)
  await until(
    () => at.length === 7,
    'seven attempts',
    () => clock.advance(1000),
  )
  const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0))
  for (const [index, pause] of pauses.entries()) {
    const whole = Math.min(1000 * 2 ** index, 60_000)
    // The clock of this test advances by seconds.
    assert.ok(pause >= whole / 2 - 1000, `pause ${index}: ${pause} ms`)
  }
  assert.deepEqual(new Set(receiver.batches.map(String)), new Set([String(upTo(last))]))
  assert.equal(counted.lagging, last + 1)
  receiver.answers = () => ({ kind: 'accepted' })
  await until(
    () => receiver.accepted.length === last + 1,
    'all records',
    () => clock.advance(1000),
  )
  assert.deepEqual(receiver.accepted, upTo(last))
  assert.equal(counted.failures, 7)
})

test('Retry-After is honored', async (t) => {
  const fixture = await setUpSinks(t)
  await fixture.fill(1)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  const at: number[] = []
  receiver.answers = () => {
    at.push(clock.now())
    return { ...down, retryAfterMs: 120_000 }
  }
  await fixture.sink(receiver, {}, clock)
  await until(
    () => at.length === 2,
    'a second attempt',
    () => clock.advance(5000),
  )
  assert.ok((at[1] ?? 0) - (at[0] ?? 0) >= 120_000)
})

test('a sink continues after its last record', async (t) => {
  const fixture = await setUpSinks(t)
  const first = await fixture.fill(5)
  const receiver = new ScriptedReceiver()
  const { sink } = await fixture.sink(receiver)
  await until(() => receiver.accepted.length === first + 1, 'the first records')
  await sink.close()
  const last = await fixture.fill(5)
  assert.equal(receiver.accepted.length, first + 1)
  await fixture.sink(receiver)
  await until(() => receiver.accepted.length === last + 1, 'the others')
  assert.deepEqual(receiver.accepted, upTo(last))
  assert.equal(statSync(join(fixture.dir, 'siem.cursor.json')).mode & 0o777, 0o600)
})

test('remaining records are delivered at shutdown, which does not wait for unreachable receivers', async (t) => {
  const fixture = await setUpSinks(t)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  const { sink } = await fixture.sink(receiver, { pollIntervalMillis: 3_600_000 }, clock)
  await until(() => receiver.accepted.length === 1, 'the first record')
  const last = await fixture.fill(3)
  await sink.close()
  assert.deepEqual(receiver.accepted, upTo(last))
  assert.equal(JSON.parse(readFileSync(join(fixture.dir, 'siem.cursor.json'), 'utf8')).seq, last)
  const deaf = new ScriptedReceiver()
  const silence = Promise.withResolvers<Delivery>()
  deaf.answers = () => silence.promise
  const { sink: hanging } = await fixture.sink(deaf, { name: 'deaf' }, clock)
  await until(() => deaf.batches.length === 1, 'a delivery')
  const closing = hanging.close()
  await until(() => true, 'nothing')
  await clock.advance(2_000)
  await closing
  silence.resolve({ kind: 'accepted' })
  assert.equal(existsSync(join(fixture.dir, 'deaf.cursor.json')), false)
})

test('records written during the last delivery before shutdown are delivered, too', async (t) => {
  const fixture = await setUpSinks(t)
  const receiver = new ScriptedReceiver()
  const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<Delivery>()]
  receiver.answers = () => {
    begun.resolve()
    return answer.promise
  }
  const { sink } = await fixture.sink(receiver, { pollIntervalMillis: 3_600_000 })
  await begun.promise
  const last = await fixture.fill(3)
  const closing = sink.close()
  answer.resolve({ kind: 'accepted' })
  await closing
  assert.deepEqual(receiver.accepted, upTo(last))
})

test('a record that is refused goes to the dead letters after its third refusal, and the others are delivered in order', async (t) => {
  // Shows D3.auditSinks.deadLetterPath.
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(40)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  const poison = new Set([17, 18])
  receiver.answers = (batch) =>
    batch.some(({ record }) => poison.has(record.seq))
      ? { kind: 'refused', reason: 'status 400' }
      : { kind: 'accepted' }
  const { counted } = await fixture.sink(receiver, {}, clock)
  await until(
    () => receiver.accepted.length === last - 1,
    'the others',
    () => clock.advance(500),
  )
  assert.deepEqual(
    receiver.accepted,
    upTo(last).filter((seq) => !poison.has(seq)),
  )
  for (const seq of poison) assert.equal(receiver.batches.filter((batch) => String(batch) === String(seq)).length, 3)
  const path = join(fixture.dir, 'siem.deadletter.jsonl')
  const letters = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    letters.map(({ seq, reason, line }) => ({ seq, reason, line })),
    [...poison].map((seq) => ({ seq, reason: 'status 400', line: fixture.lines()[seq] })),
  )
  assert.equal(statSync(path).mode & 0o777, 0o600)
  await until(() => counted.limit === last - 1, 'all of them counted')
  assert.equal(counted.dead, 2)
})

test('records rejected within an accepted batch go to the dead letters at once', async (t) => {
  const fixture = await setUpSinks(t)
  const last = await fixture.fill(5)
  const receiver = new ScriptedReceiver()
  receiver.answers = (batch) => ({
    kind: 'accepted',
    refused: batch.filter(({ record }) => record.seq < 2).map((item) => ({ item, reason: 'too old' })),
  })
  const own = join(fixture.dir, 'elsewhere', 'dead.jsonl')
  const { counted } = await fixture.sink(receiver, { deadLetterPath: own })
  await until(() => receiver.accepted.length === last - 1, 'the others')
  await until(() => counted.lagging === 0, 'no lag')
  assert.equal(readFileSync(own, 'utf8').trimEnd().split('\n').length, 2)
  assert.deepEqual([counted.dead, counted.limit], [2, last - 1])
})

test('when the dead letters are full delivery stops, without loss or repetition, until there is room', async (t) => {
  // Shows D3.auditSinks.deadLetterMaxBytes, D3.limit.deadLetter.
  const fixture = await setUpSinks(t)
  await fixture.fill(8)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  receiver.answers = (batch) => ({
    kind: 'accepted',
    refused: batch.filter(({ record }) => record.seq % 2 === 1).map((item) => ({ item, reason: 'too old' })),
  })
  const path = join(fixture.dir, 'siem.deadletter.jsonl')
  const letter = {
    at: '2026-01-01T00:00:00Z',
    reason: 'too old',
    seq: 1,
    hash: 'a'.repeat(64),
    line: fixture.lines()[1],
  }
  const room = 2 * (JSON.stringify(letter).length + 1) + 50
  const { counted } = await fixture.sink(receiver, { deadLetterMaxBytes: room }, clock)
  await until(
    () => counted.failures > 5,
    'failures',
    () => clock.advance(60_000),
  )
  assert.equal(receiver.batches.length, 1)
  assert.ok(statSync(path).size <= room)
  assert.equal(counted.dead, 2)
  renameSync(path, `${path}.1`)
  await until(
    () => counted.limit === 5,
    'the other letters',
    () => clock.advance(60_000),
  )
  assert.equal(receiver.batches.length, 1)
  assert.deepEqual([counted.lagging, counted.dead], [0, 4])
  const numbers = [`${path}.1`, path].flatMap((file) =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
  )
  assert.deepEqual(numbers, [1, 3, 5, 7])
})

test('a cursor of another ledger, or an invalid one, is refused naming the file to remove', async (t) => {
  const fixture = await setUpSinks(t)
  await fixture.fill(3)
  const cursor = join(fixture.dir, 'siem.cursor.json')
  const cases = {
    'does not hold record 2 with hash': JSON.stringify({ version: 1, seq: 2, hash: '0'.repeat(64) }),
    'does not hold record 99 with hash': JSON.stringify({ version: 1, seq: 99, hash: '0'.repeat(64) }),
    'holds no place in a ledger': '{"version":2}',
    'siem.cursor.json holds no place': '{"vers',
  }
  for (const [message, text] of Object.entries(cases)) {
    writeFileSync(cursor, text)
    await assert.rejects(fixture.sink(new ScriptedReceiver()), (error: Error) => {
      assert.match(error.message, /^auditSinks "siem": /)
      assert.ok(error.message.includes(message), error.message)
      assert.ok(error.message.includes(`remove ${cursor}`))
      return true
    })
  }
})

test('an exception of a receiver counts as a failure', async (t) => {
  const fixture = await setUpSinks(t)
  const clock = new TestClock()
  const receiver = new ScriptedReceiver()
  receiver.answers = () => Promise.reject(new Error('tokenFile: /t is missing'))
  const { counted } = await fixture.sink(receiver, {}, clock)
  await until(
    () => counted.failures > 2,
    'failures',
    () => clock.advance(1000),
  )
  assert.deepEqual(receiver.accepted, [])
})
