import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { createMemoryJournal } from '@plat/state'
import { UsageBook } from './book.ts'
import type { UsageEvent } from './events.ts'
import { LONGEST_MS, OLDEST_MS, type Report } from './report.ts'

const report = (session: string): Report => ({
  id: 'r',
  session,
  from: 0,
  to: 1000,
  cpuMs: 1,
  memoryByteSeconds: 1,
  gpuMs: 0,
})

test('reports are accepted up to the share of a namespace, other namespaces are served, and old sessions make room', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<UsageEvent>(() => clock.now())
  const book = await UsageBook.open({ journal, onFault() {} })
  const claim = async (session: string) => {
    book.known(report(session))
    const { session: _, ...used } = report(session)
    const cost = { costMicros: 0, currency: 'USD', priceId: '' }
    const by = { by: 'b', replica: 'x', at: 0, user: null, groups: [] }
    await book.claim(session, { ...used, ...cost, ...by, call: 'c', digest: 'd', counted: true })
  }
  const share = poolTable.reported_sessions.shares[0].max
  for (let n = 0; n < share; n++) await claim(`greedy/a/s${n}`)
  assert.throws(() => book.known(report('greedy/a/more')), { code: 'backlog_full' })
  await claim('modest/a/s')
  await book.sweep(1000 + OLDEST_MS + LONGEST_MS + 1)
  assert.equal(book.known(report('greedy/a/more')), null)
  book.close()
})
