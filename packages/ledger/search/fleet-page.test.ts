import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { type FleetCursor, fleetPage, openLedger, readFleetCursor, writeFleetCursor } from '../index.ts'

const RECORDS = 60

/** Three ledgers with records at moments that alternate between them. */
async function threeLedgers() {
  const clock = new TestClock()
  const folder = tempFolder()
  const ids = ['a', 'b', 'c']
  const ledgers = await Promise.all(
    ids.map((id) =>
      openLedger({ path: join(folder, `${id}.jsonl`), tenant: '', replica: id, clock, ids: systemIds(clock) }),
    ),
  )
  for (let n = 0; n < RECORDS; n++) {
    await clock.advance(1)
    const action = n % 10 === 3 ? 'rare' : 'usual'
    await ledgers[(n * n) % 3]?.append({ kind: 'admin', action, n })
  }
  for (const ledger of ledgers) await ledger.close()
  return ids.map((id) => ({ id, path: join(folder, `${id}.jsonl`) }))
}

for (const newestFirst of [false, true]) {
  for (const [limit, bytes] of [
    [1, 1_000_000],
    [7, 1_000_000],
    [1000, 1_000_000],
    [5, 900],
    [3, 1],
  ] as const) {
    test(`pages of ${limit} records and ${bytes} bytes are one list by time, newest first: ${newestFirst}`, async () => {
      const ledgers = await threeLedgers()
      for (const wanted of ['usual', 'rare']) {
        const found: unknown[] = []
        let cursor: FleetCursor | null = null
        do {
          const query = { limit, newestFirst, from: 0, to: null, bytes }
          const page = await fleetPage(ledgers, { ...query, wants: ({ action }) => action === wanted }, cursor)
          assert.ok(page.items.length <= limit)
          found.push(...page.items.map(({ rec }) => rec.n))
          const text = writeFleetCursor(page.next)
          cursor = text === null ? null : readFleetCursor(text)
        } while (cursor !== null)
        const all = Array.from({ length: RECORDS }, (_, n) => n).filter((n) => (n % 10 === 3) === (wanted === 'rare'))
        assert.deepEqual(found, newestFirst ? all.toReversed() : all)
      }
    })
  }
}

test('a text that is no cursor is refused', () => {
  for (const text of ['', '12', 'x', Buffer.from('[["a",-1]]').toString('base64url'), 'A'.repeat(20_000)])
    assert.equal(readFleetCursor(text), null, text)
})
