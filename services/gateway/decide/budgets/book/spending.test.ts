import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { openLedger, type Rec } from '@plat/ledger'
import { type HoldItem, LocalLimits, windowOf } from '@plat/state'
import { Spending } from './spending.ts'

const KEY = 'usd/session/default/assistant/s'
let folder = ''
let path = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
})
after(() => rmSync(folder, { recursive: true }))
beforeEach(() => {
  for (const file of [path, `${path}.head`]) rmSync(file, { force: true })
})

const clock = new TestClock()
const held = (amount: number): HoldItem => ({ key: KEY, window: 'life', cap: 1000, amount, unit: 'micros' })
const intent = (call: string, holds?: readonly HoldItem[]): Rec => ({
  kind: 'intent',
  call,
  holds: holds?.map((item) => ({ ...item })),
})
const outcome = (call: string, costMicros: number, settled?: Record<string, number>): Rec => ({
  kind: 'outcome',
  call,
  costMicros,
  settled,
})

/** Opens the ledger as a gateway does and appends records. Returns the amounts spent before. */
async function run(...records: readonly Rec[]) {
  const limits = new LocalLimits({ clock })
  const spending = new Spending({ limits, alerts: { restore() {} }, saved: null })
  const options = { path, tenant: '', replica: 'r', clock, ids: systemIds(clock) }
  const ledger = await openLedger({ ...options, onRecord: spending.see })
  const total = spending.finish()
  const appended = records.map((record) => ledger.append(record))
  await ledger.flush()
  await Promise.all(appended)
  await ledger.close()
  return { total, limits, ...(await limits.used(KEY, 'life')) }
}

test('after a restart settled amounts are spent and nothing is held', async () => {
  await run(
    intent('1', [held(100)]),
    intent('2', [held(100)]),
    outcome('2', 40, { [KEY]: 40 }),
    outcome('1', 0, { [KEY]: 0 }),
  )
  const { spent, held: open, total } = await run()
  assert.deepEqual([spent, open, total], [40, 0, 40])
})

test('an intent without an outcome is spent whole, once, however often the process starts', async () => {
  await run(intent('1', [held(100)]), intent('2', [held(7)]), outcome('2', 3, { [KEY]: 3 }))
  for (let start = 0; start < 3; start++) {
    const { spent, total } = await run()
    assert.deepEqual([spent, total], [103, 103], `start ${start}`)
  }
})

test('an outcome without settled amounts spends the whole hold', async () => {
  await run(intent('1', [held(100)]), outcome('1', 5))
  assert.equal((await run()).spent, 100)
})

test('an outcome whose intent could not be written counts all the same', async () => {
  await run(outcome('1', 60, { [KEY]: 60, 'rate/p/r/s': 1 }))
  const { spent, total } = await run()
  assert.deepEqual([spent, total], [60, 60])
})

test('cost without a limit counts in the total, and other records are ignored', async () => {
  await run(
    outcome('1', 250),
    outcome('2', 0),
    { kind: 'decision', call: '3', reason: '"kind":"outcome","costMicros":7' },
    intent('4'),
    outcome('4', 8),
  )
  const { spent, total } = await run()
  assert.deepEqual([spent, total], [0, 258])
})

test('rates of the current window count after a restart, those of ended windows do not', async () => {
  const rate = (window: string): HoldItem => ({ key: 'rate/p/r/s', window, cap: 5, amount: 1, unit: 'calls' })
  const now = windowOf(clock.now(), 60)
  const before = windowOf(clock.now() - 60_000, 60)
  await run(
    intent('1', [rate(now)]),
    outcome('1', 0, { 'rate/p/r/s': 1 }),
    intent('2', [rate(before)]),
    outcome('2', 0, { 'rate/p/r/s': 1 }),
  )
  const { limits } = await run()
  assert.equal((await limits.used('rate/p/r/s', now)).spent, 1)
  assert.equal((await limits.used('rate/p/r/s', before)).spent, 0)
})
