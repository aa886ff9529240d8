import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryJournal } from '@plat/state'
import { UsageBook } from './book.ts'
import type { UsageEvent } from './events.ts'
import { digestOf, type Report, readReport } from './report.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const body = {
  id: 'a',
  session: 'default/assistant/s',
  from: '2026-11-20T11:00:00Z',
  to: '2026-11-20T12:00:00.000Z',
  cpuMs: 1,
  memoryByteSeconds: 2,
  gpuMs: 3,
}
const refused = (more: object) => {
  try {
    readReport({ ...body, ...more }, NOW)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

test('a report is validated strictly: fields, times and values possible in its span', () => {
  assert.deepEqual(readReport(body, NOW), { ...body, from: NOW - 3_600_000, to: NOW })
  const { gpuMs: _, ...least } = body
  assert.equal(readReport(least, NOW).gpuMs, 0)
  assert.equal(refused({ to: '2026-11-20T13:00:05+01:00', from: '2026-11-20T11:30:00Z' }), '')
  const wrong = [
    [
      { to: '2026-11-20T12:00:06Z', from: '2026-11-20T11:30:00Z' },
      /^to: lies in the future: it is 2026-11-20T12:00:00/,
    ],
    [{ from: '2026-11-20T10:59:59Z' }, /^to: a report is about an hour at most/],
    [{ to: '2026-11-20T11:00:00Z' }, /^to: must be after from/],
    [{ from: '2026-11-13T11:59:59Z', to: '2026-11-13T12:30:00Z' }, /^from: more than seven days ago/],
    [{ from: '2026-11-20' }, /^from: /],
    [{ from: '2026-13-20T11:00:00Z' }, /^from: is not a time/],
    [{ cpuMs: 1.5 }, /^cpuMs: /],
    [{ memoryByteSeconds: 2 ** 53 }, /^memoryByteSeconds: /],
    [{ id: 'a b' }, /^id: /],
    [{ session: 'default/s' }, /^session: /],
    [{ more: 1 }, /more|additional/],
  ] as const
  for (const [more, message] of wrong) assert.match(refused(more), message)
})

function fail(): never {
  assert.fail('the journal has failed')
}

let claimed = 0
async function bookWith(reports: readonly Report[]) {
  const journal = createMemoryJournal<UsageEvent>(() => NOW)
  const book = await UsageBook.open({ journal, onFault: fail })
  for (const report of reports) {
    assert.equal(book.known(report), null)
    const { session, ...usage } = report
    const call = `call-${claimed++}`
    const facts = {
      by: 'r',
      replica: 'here',
      at: NOW,
      user: null,
      groups: [],
      costMicros: 0,
      currency: 'EUR',
      priceId: '',
    }
    const claim = { ...usage, ...facts, call, digest: digestOf(report), counted: false }
    assert.ok(await book.claim(session, claim))
    await book.counted(session, report.id)
  }
  return { book, journal }
}

/** A report about minute `at` of the last hour. */
const minute = (at: number): Report => {
  const from = NOW - 3_600_000 + at * 60_000
  return { ...body, id: `m${at}`, from, to: from + 60_000 }
}

test('adjacent spans do not overlap, late ones fit into gaps, and ids are unique per session', async () => {
  const { book } = await bookWith([minute(2), minute(4), minute(3)])
  const half = { ...minute(3), id: 'x', from: minute(3).from + 1, to: minute(3).to - 1 }
  assert.throws(() => book.known(half), /^Error: from: overlaps report m3/)
  assert.equal(book.known(minute(1)), null)
  assert.equal(book.known({ ...minute(2), session: 'default/assistant/other' }), null)
  assert.equal(book.known(minute(2))?.id, 'm2')
  assert.throws(() => book.known({ ...minute(2), cpuMs: 9 }), /^Error: id: report m2 was sent before with other values/)
})

test('long sessions keep their newest spans, and refuse anything before them', async () => {
  const { book } = await bookWith(Array.from({ length: 40 }, (_, at) => minute(at)))
  assert.equal(book.known(minute(39))?.id, 'm39')
  assert.throws(() => book.known(minute(3)), /^Error: from: lies before .*, up to which this session is settled/)
  assert.equal(book.known(minute(40)), null)
})

test('a book read from the journal equals the one that wrote it, before and after a compaction', async () => {
  const { book, journal } = await bookWith(
    Array.from({ length: 5_010 }, (_, at) => ({
      ...minute(at % 20),
      id: `${at}`,
      session: `default/a/${Math.floor(at / 20)}`,
    })),
  )
  const read = () => UsageBook.open({ journal, onFault: fail })
  const known = { ...minute(19), id: '39', session: 'default/a/1' }
  assert.equal((await read()).known(known)?.id, '39')
  await book.sweep(NOW)
  let events = 0
  for await (const _ of journal.read(0)) events++
  assert.equal(events, 251)
  const again = await read()
  assert.equal(again.known(known)?.id, '39')
  assert.throws(() => again.known({ ...minute(1), id: 'x', session: 'default/a/1' }), /^Error: from: lies before/)
  assert.equal(await again.claim(known.session, claimOf(again, known)), true, 'the version follows the journal')
})

function claimOf(book: UsageBook, report: Report) {
  const claim = book.known(report)
  assert.ok(claim !== null)
  return claim
}

test('sessions too old for further reports are forgotten', async () => {
  const { book } = await bookWith([minute(1)])
  await book.sweep(NOW + 7 * 86_400_000)
  assert.equal(book.known(minute(1))?.id, 'm1')
  await book.sweep(NOW + 8 * 86_400_000)
  assert.equal(book.known(minute(1)), null)
})
