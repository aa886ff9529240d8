import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock as clock, systemIds } from '@plat/core'
import { type Ledger, openLedger, type Rec, tailLedger } from '@plat/ledger'
import { createMemoryJournal, isShort, type Journal, LocalLimits } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { Spending } from '../../decide/budgets/book/spending.ts'
import { UsageBook } from './book.ts'
import type { UsageEvent } from './events.ts'
import { type DeskParts, UsageReports } from './usage-reports.ts'

const ids = systemIds(clock)
const KEY = 'usd/session/default/assistant/s'
const report = {
  id: 'a',
  session: 'default/assistant/s',
  from: clock.now() - 60_000,
  to: clock.now(),
  cpuMs: 70,
  memoryByteSeconds: 0,
  gpuMs: 0,
}

function fail(): never {
  assert.fail('this must not happen')
}

/** A gateway whose process ends at write step `diesAt`. */
class UsageFixture {
  readonly path = join(tempFolder(), 'audit.jsonl')
  readonly journal = createMemoryJournal<UsageEvent>(() => clock.now())
  limits = new LocalLimits({ clock })
  /** False if there are no budgets. */
  isCapped = true
  metered = 0
  #steps = 0
  diesAt = Number.POSITIVE_INFINITY
  #ledger: Ledger | null = null

  #step(): void {
    if (this.#steps++ >= this.diesAt) throw new Error('the process has ended')
  }

  async start(): Promise<UsageReports> {
    this.limits = new LocalLimits({ clock })
    const spending = new Spending({ limits: this.limits, alerts: { restore() {} }, saved: null })
    const ledger = await openLedger({ path: this.path, tenant: '', replica: 'r', clock, ids, onRecord: spending.see })
    spending.finish()
    this.#ledger = ledger
    const step = () => this.#step()
    const writing = async <T>(write: () => Promise<T>): Promise<T> => {
      step()
      return await write()
    }
    const journal: Journal<UsageEvent> = {
      ...this.journal,
      read: (after) => this.journal.read(after),
      follow: (after, apply, signal) => this.journal.follow(after, apply, signal),
      append: (key, events, onlyIf) => writing(() => this.journal.append(key, events, onlyIf)),
    }
    const book = await UsageBook.open({ journal, onFault: fail })
    const append = (rec: Rec) => writing(() => ledger.append(rec))
    const parts: DeskParts = {
      book,
      find: async () => ({ user: 'ada', groups: ['g'] }),
      charging: {
        costOf: ({ cpuMs }) => ({ micros: cpuMs, currency: 'EUR', priceId: 'p' }),
        take: (id, payer, { micros }) => {
          assert.deepEqual(payer, {
            namespace: 'default',
            agent: 'assistant',
            session: 's',
            user: 'ada',
            groups: ['g'],
          })
          if (!this.isCapped) return null
          const items = [{ key: KEY, window: 'life', cap: 1_000_000, amount: micros, unit: 'micros' as const }]
          const hold = this.limits.take(id, items, clock.now() + 1000)
          return isShort(hold) ? null : hold
        },
        metered: (micros) => {
          this.metered += micros
        },
      },
      ledgerOf: () => ({ ledger: { append }, path: this.path }),
      see() {},
      replica: 'here',
      clock,
      ids,
    }
    return new UsageReports(parts)
  }

  async end(): Promise<void> {
    await this.#ledger?.close()
    await rm(`${this.path}.lock`, { force: true })
  }

  async spent(): Promise<number> {
    return (await this.limits.used(KEY, 'life')).spent
  }

  async records(): Promise<number> {
    let count = 0
    for await (const { rec } of tailLedger(this.path)) if (rec.op === 'usage.sandbox' && rec.kind === 'outcome') count++
    return count
  }
}

for (const diesAt of [0, 1, 2, 3, 4]) {
  test(`a report whose gateway dies at its step ${diesAt} counts once, finished by the next start or sent again`, async () => {
    const fixture = new UsageFixture()
    const desk = await fixture.start()
    fixture.diesAt = diesAt
    const sent = desk.take(report, 'meter')
    if (diesAt < 4) await assert.rejects(sent)
    else assert.equal((await sent).duplicate, false)
    await fixture.end()
    fixture.diesAt = Number.POSITIVE_INFINITY
    const next = await fixture.start()
    await next.finish(fail)
    assert.equal(await fixture.spent(), diesAt === 0 ? 0 : 70, 'the claim is charged exactly')
    assert.equal((await next.take(report, 'meter')).duplicate, diesAt !== 0)
    assert.equal((await next.take(report, 'meter')).duplicate, true)
    assert.equal(await fixture.spent(), 70)
    await fixture.end()
    await fixture.start()
    assert.equal(await fixture.spent(), 70)
    assert.equal(await fixture.records(), 1)
    await fixture.end()
  })
}

test('a report that could not be recorded counts once when it is sent again, to the same process', async () => {
  for (const diesAt of [1, 2, 3]) {
    const fixture = new UsageFixture()
    const desk = await fixture.start()
    fixture.diesAt = diesAt
    await assert.rejects(desk.take(report, 'meter'))
    assert.equal((await fixture.limits.used(KEY, 'life')).held, 0, 'a refused report holds nothing')
    fixture.diesAt = Number.POSITIVE_INFINITY
    assert.equal((await desk.take(report, 'meter')).duplicate, true)
    assert.equal(await fixture.spent(), 70, `step ${diesAt}`)
    await fixture.end()
    await fixture.start()
    assert.equal(await fixture.spent(), 70, `step ${diesAt}, after a start`)
    await fixture.end()
  }
})

test('a report of a session without a budget is metered once, however often it could not be recorded', async () => {
  const fixture = new UsageFixture()
  fixture.isCapped = false
  const desk = await fixture.start()
  fixture.diesAt = 1
  await assert.rejects(desk.take(report, 'meter'))
  await assert.rejects(desk.take(report, 'meter'))
  assert.equal(fixture.metered, 0)
  fixture.diesAt = Number.POSITIVE_INFINITY
  await desk.take(report, 'meter')
  assert.equal((await desk.take(report, 'meter')).duplicate, true)
  assert.deepEqual([fixture.metered, await fixture.records()], [70, 1])
  await fixture.end()
})
