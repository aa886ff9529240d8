import assert from 'node:assert/strict'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createMemoryJournal, fileJournals, LocalLimits } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { BatchBook, type BatchBookOptions, KEPT_MS } from './book.ts'
import type { BatchEvent, BatchUsed, StoredBatch } from './events.ts'

const HOUR_MS = 3_600_000
const USAGE = { prompt: 1, completion: 2, cachedRead: 0, cachedWrite: 0, reasoning: 0 }
const USED: BatchUsed = { usage: USAGE, costMicros: 30 }
const hold = { key: 'usd/day', window: 'life', amount: 100, unit: 'micros' } as const

const batchAt = (at: number): StoredBatch => ({
  ...{ account: 'a', id: 'batch_1', at, call: 'call-1', jti: 'j', tenant: '', namespace: 'default' },
  ...{ agent: 'assistant', session: 's1', user: null, route: 'r', server: 'llm/r', model: 'm' },
  ...{ priced: { key: 'openai/m', scopes: [] }, options: [], requests: 1, sha256: 'f', labels: [], holds: [hold] },
})

/** A function that opens the book of a gateway, in which settlements are counted, or fail. */
function setUp(t: TestContext, clock = new TestClock(), journals: BatchBookOptions['journals'] = fileJournals(clock)) {
  const config = { auditPath: path.join(tempFolder(), 'ledger.jsonl') }
  const settled: (readonly [string, BatchUsed])[] = []
  const opened = async (replica: string, fails = false) => {
    const limits = new LocalLimits({ clock })
    const book = await BatchBook.open({ config, journals, clock, log: silentLog, replica })
    await book.begin({
      limits,
      async settle(_, used, held) {
        if (fails) throw new Error('the ledger is full')
        settled.push([replica, used])
        await held?.settle(new Map([[hold.key, used.usage === null ? hold.amount : used.costMicros]]))
      },
    })
    let closing: Promise<void> | null = null
    const close = () => {
      closing ??= book.close()
      return closing
    }
    t.after(close)
    return { book, close, used: () => limits.used(hold.key, 'life') }
  }
  return { clock, settled, opened }
}

test('a batch is settled once, however often its results are read', async (t) => {
  const { clock, settled, opened } = setUp(t)
  const { book, used } = await opened('one')
  assert.equal(await book.created(batchAt(clock.now())), null)
  assert.deepEqual(await used(), { spent: 0, held: 100 })
  const batch = book.find('a', 'batch_1') ?? assert.fail()
  await Promise.all([book.settle(batch, USED), book.settle(batch, USED)])
  await book.settle(batch, USED)
  assert.deepEqual([settled.length, await used()], [1, { spent: 30, held: 0 }])
  assert.equal(book.find('a', 'batch_1'), null)
})

test('an id that belongs to another batch is refused', async (t) => {
  const { clock, opened } = setUp(t)
  const { book, used } = await opened('one')
  await book.created(batchAt(clock.now()))
  assert.equal((await book.created(batchAt(clock.now())))?.code, 'upstream_error')
  assert.deepEqual(await used(), { spent: 0, held: 100 })
})

test('a settlement that failed is finished at the next start, or by another gateway after an hour', async (t) => {
  for (const [next, waitMs] of [
    ['one', 0],
    ['other', 2 * HOUR_MS],
  ] as const) {
    const { clock, settled, opened } = setUp(t)
    const first = await opened('one', true)
    await first.book.created(batchAt(clock.now()))
    await first.book.settle(first.book.find('a', 'batch_1') ?? assert.fail(), USED)
    assert.deepEqual([settled, await first.used()], [[], { spent: 0, held: 100 }])
    await first.close()
    const second = await opened(next)
    await clock.advance(waitMs)
    await until(async () => (await second.used()).held === 0, 'the settlement')
    assert.deepEqual([settled, await second.used()], [[[next, USED]], { spent: 30, held: 0 }], next)
  }
})

test('of a batch whose results were never read, the whole hold is spent at its age', async (t) => {
  const { clock, settled, opened } = setUp(t)
  const { book, used } = await opened('one')
  await book.created(batchAt(clock.now()))
  await clock.advance(KEPT_MS - 48 * HOUR_MS)
  assert.equal(settled.length, 0)
  await clock.advance(26 * HOUR_MS)
  await until(async () => (await used()).held === 0, 'the settlement')
  assert.deepEqual([settled.map(([, { usage }]) => usage), await used()], [[null], { spent: 100, held: 0 }])
})

test('the files of results lead to their batch until it is settled, also after a restart', async (t) => {
  const { clock, opened } = setUp(t)
  const first = await opened('one')
  const batch = batchAt(clock.now())
  await first.book.created(batch)
  assert.equal(await first.book.results(batch, ['file-1']), null)
  await first.close()
  const { book } = await opened('one')
  assert.deepEqual([book.ofFile('a', 'file-1')?.id, book.ofFile('b', 'file-1')], ['batch_1', null])
  await book.settle(batch, USED)
  assert.equal(book.ofFile('a', 'file-1'), null)
})

test('of two gateways that read the results at once, one settles the batch', async (t) => {
  const clock = new TestClock()
  const journal = createMemoryJournal<BatchEvent>(() => clock.now())
  let gate: Promise<void> | null = null
  const append: typeof journal.append = async (...args) => {
    await gate
    return journal.append(...args)
  }
  const gated: typeof journal = {
    ...{ health: 'ok', append, close: () => journal.close() },
    ...{ read: (...all) => journal.read(...all), follow: (...all) => journal.follow(...all) },
    compact: (...all) => journal.compact(...all),
  }
  const { settled, opened } = setUp(t, clock, { open: async () => gated })
  const [one, other] = [await opened('one'), await opened('other')]
  await one.book.created(batchAt(clock.now()))
  await until(() => other.book.find('a', 'batch_1') !== null, 'the batch at the other gateway')
  const settle = ({ book }: typeof one) => book.settle(book.find('a', 'batch_1') ?? assert.fail(), USED)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const settling = Promise.all([settle(one), settle(other)])
  resolve()
  await settling
  assert.equal(settled.length, 1)
})
