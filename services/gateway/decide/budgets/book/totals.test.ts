import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { canonicalJson, rfc3339Micros, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Hold, type HoldItem, isShort, LocalLimits } from '@plat/state'
import { until } from '@plat/testkit/until'
import fc from 'fast-check'
import { Alerts } from '../alerts.ts'
import { keepTotals } from './keeper.ts'
import { Spending } from './spending.ts'
import { readTotals, type SavedTotals, writeTotals } from './totals.ts'

let folder = ''
let path = ''
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl.finops.json')
})
after(() => rmSync(folder, { recursive: true }))

const clock = new TestClock()
const KEYS = ['usd/session/default/a/s', 'usd/Agent/default/a/day', 'tokens/Agent/default/a/day-tokens']
const WINDOWS = ['life', '2026-01-01', '2026-01-01']

const totals: SavedTotals = {
  ledger: { seq: 3, hash: 'h3' },
  totalMicros: 7,
  open: [{ call: 'c', at: 5, items: [{ key: 'usd/a', window: 'life', cap: 9, amount: 2, unit: 'micros' }] }],
  told: [{ key: 'usd/a', window: 'life', percents: [50] }],
  counted: Array.from({ length: 1_201 }, (_, at) => ({ key: `usd/${at}`, window: 'life', spent: at + 1, usedAt: 1 })),
}

test('totals round-trip through the file, and a missing file gives null', async () => {
  assert.equal(await readTotals(join(folder, 'none')), null)
  await writeTotals(path, totals)
  assert.deepEqual(await readTotals(path), {
    version: 1,
    ...totals,
    sha256: JSON.parse(readFileSync(path, 'utf8')).sha256,
  })
  await writeTotals(path, { ...totals, counted: [], open: [], told: [] })
  const read = await readTotals(path)
  assert.ok(typeof read === 'object' && read?.counted.length === 0)
})

test('a changed, truncated or foreign file is rejected with the reason', async () => {
  await writeTotals(path, totals)
  const text = readFileSync(path, 'utf8')
  for (const [wrong, why] of [
    [text.replace('"totalMicros":7', '"totalMicros":6'), 'the checksum does not match'],
    [text.slice(0, 100), 'not JSON'],
    ['{"version":2}', 'not a totals file'],
    [text.replace('"spent":1,', '"spent":-1,'), 'not a totals file'],
  ] as const) {
    writeFileSync(path, wrong)
    assert.equal(await readTotals(path), why)
  }
})

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('take' as const),
      amounts: fc.array(fc.nat(50), { minLength: 3, maxLength: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      which: fc.nat(),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'save' as const }) },
)

/** A gateway that writes a ledger and saves its totals. */
class Gateway {
  readonly records: Buffer[] = []
  readonly alerts = new Alerts({ now: () => clock.now(), zone: 'UTC' })
  readonly limits = new LocalLimits({ clock })
  readonly open: Hold[] = []
  total = 0
  saved: SavedTotals | null = null

  write(record: object): void {
    this.records.push(Buffer.from(canonicalJson({ at: rfc3339Micros(clock.now()), ...record })))
  }

  take(amounts: readonly number[]): void {
    const call = `c${this.records.length}`
    const items: HoldItem[] = amounts.map((amount, at) => ({
      key: KEYS[at] ?? '',
      window: WINDOWS[at] ?? '',
      cap: 1e9,
      amount,
      unit: at === 2 ? 'tokens' : 'micros',
    }))
    const hold = this.limits.take(call, items, clock.now() + 1e9)
    if (isShort(hold)) return
    this.open.push(hold)
    this.write({ kind: 'intent', call, holds: items.map((item) => ({ ...item })) })
  }

  settle(which: number, part: number): void {
    const [hold] = this.open.splice(which % Math.max(1, this.open.length), 1)
    if (hold === undefined) return
    const settled = new Map(hold.items.map(({ key, amount }) => [key, Math.floor(amount * part)]))
    const costMicros = settled.get(KEYS[0] ?? '') ?? 0
    hold.settle(settled)
    this.total += costMicros
    this.write({ kind: 'outcome', call: hold.id, costMicros, settled: Object.fromEntries(settled) })
  }

  /** Through the file, as the keeper does. */
  async save(): Promise<void> {
    const placed = () => ({ seq: this.records.length, hash: `h${this.records.length}` })
    const flushed = async () => placed()
    const options = { path, everyMs: 1e9, placed, flushed, totalMicros: () => this.total, clock, log: silentLog }
    const keeper = keepTotals({ ...options, limits: this.limits, alerts: this.alerts })
    await keeper.close()
    const read = await readTotals(path)
    if (typeof read === 'string') assert.fail(read)
    this.saved = read
  }
}

/** Result of a start on a ledger, with or without saved totals. */
async function start(records: readonly Buffer[], saved: SavedTotals | null) {
  const limits = new LocalLimits({ clock })
  const spending = new Spending({ limits, alerts: { restore() {} }, saved })
  for (const [at, record] of records.entries()) spending.see(record, { seq: at + 1, hash: `h${at + 1}` })
  const again = spending.mustReadAgain
  const total = spending.finish()
  const used = await Promise.all(KEYS.map((key, at) => limits.used(key, WINDOWS[at] ?? '')))
  return { again, total, used }
}

test('saved totals plus the rest of the ledger always equal the whole ledger', async () => {
  // Shows D3.cost.finopsStatePath.
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const gateway = new Gateway()
      gateway.write({ kind: 'config' })
      for (const it of steps) {
        if (it.do === 'take') gateway.take(it.amounts)
        else if (it.do === 'settle') gateway.settle(it.which, it.part)
        else await gateway.save()
      }
      const whole = await start(gateway.records, null)
      assert.deepEqual(await start(gateway.records, gateway.saved), whole)
    }),
    { numRuns: 60 },
  )
})

test('totals of another ledger or of lost records are detected', async () => {
  const gateway = new Gateway()
  for (let at = 0; at < 3; at++) gateway.take([1, 2, 3])
  await gateway.save()
  const { saved, records } = gateway
  assert.ok(saved !== null)
  const whole = await start(records, null)
  assert.deepEqual(await start(records, saved), whole)
  const nothing = { again: true, total: 0, used: KEYS.map(() => ({ spent: 0, held: 0 })) }
  assert.deepEqual(await start(records, { ...saved, ledger: { seq: 3, hash: 'other' } }), nothing)
  assert.deepEqual(await start(records.slice(0, 2), saved), nothing)
})

test('totals are saved at the interval while records arrive, and not otherwise', async () => {
  // Shows D3.cost.finopsSaveSeconds.
  rmSync(path, { force: true })
  const time = new TestClock()
  let seq = 1
  const keeper = keepTotals({
    path,
    everyMs: 10_000,
    placed: () => ({ seq, hash: 'h' }),
    flushed: async () => ({ seq, hash: 'h' }),
    totalMicros: () => seq,
    limits: new LocalLimits({ clock: time }),
    alerts: new Alerts({ now: () => time.now(), zone: 'UTC' }),
    clock: time,
    log: silentLog,
  })
  const written = async () => {
    const read = await readTotals(path)
    return typeof read === 'object' && read !== null ? read.totalMicros : null
  }
  await time.advance(9_999)
  await time.advance(1)
  await until(async () => (await written()) === 1, 'the first save')
  rmSync(path)
  await time.advance(10_000)
  await keeper.save()
  assert.equal(await written(), null, 'nothing was recorded since')
  seq = 2
  await time.advance(10_000)
  await until(async () => (await written()) === 2, 'the second save')
  seq = 3
  await keeper.close()
  assert.equal(await written(), 3)
})

test('totals up to a record that is not durable are not saved', async () => {
  rmSync(path, { force: true })
  const head = { seq: 1, hash: 'h' }
  const keeper = keepTotals({
    ...{ path, everyMs: 10_000, placed: () => ({ ...head, seq: 2 }), flushed: async () => head, totalMicros: () => 5 },
    ...{ limits: new LocalLimits({ clock }), alerts: new Alerts({ now: () => 0, zone: 'UTC' }), clock, log: silentLog },
  })
  await keeper.close()
  assert.equal(await readTotals(path), null)
})
