import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { rfc3339, systemIds, TestClock } from '@plat/core'
import { openLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { RECENT_MS, RecentKeeper, RecentRecords, readRecent } from './recent.ts'

/** Shows records to `recent`, the first one at `seq`. */
function show(recent: RecentRecords, recs: readonly object[], seq = 0): void {
  for (const [index, rec] of recs.entries())
    recent.see(Buffer.from(JSON.stringify(rec)), { seq: seq + index, hash: `h${seq + index}` })
}

function kinds(recent: RecentRecords): string[] {
  return recent.all().map(({ kind }) => kind)
}

test('records of approvals, alerts and revocations of the last day are kept', () => {
  const clock = new TestClock()
  const recent = new RecentRecords(clock)
  const at = rfc3339(clock.now())
  show(recent, [
    { at, kind: 'approval', approval: 'a' },
    { at, kind: 'alert', alert: 'pin.drift' },
    { at, kind: 'revocation' },
    { at, kind: 'outcome' },
    { at, kind: 'anchor' },
    { at, kind: 'recovered' },
    { at: rfc3339(clock.now() - RECENT_MS - 1_000), kind: 'approval', approval: 'old' },
    { at, genesis: true },
  ])
  assert.deepEqual(kinds(recent), ['approval', 'alert', 'revocation'])
})

test('saved records and the rest of the ledger are those of the whole ledger', () => {
  const clock = new TestClock()
  const at = rfc3339(clock.now())
  const recs = (['approval', 'outcome', 'alert', 'revocation'] as const).map((kind) => ({ at, kind }))
  const saved = {
    ledger: { seq: 2, hash: 'h2' },
    anchor: null,
    records: recs.slice(0, 3).filter((rec) => rec.kind !== 'outcome'),
  }
  for (const from of [0, 1, 2]) {
    const recent = new RecentRecords(clock, saved)
    show(recent, recs.slice(from), from)
    assert.equal(recent.mustReadAgain, false)
    assert.deepEqual(kinds(recent), ['approval', 'alert', 'revocation'])
  }
  for (const [hash, count] of [
    ['other', 4],
    ['h2', 2],
  ] as const) {
    const recent = new RecentRecords(clock, { ...saved, ledger: { seq: 2, hash } })
    show(recent, recs.slice(0, count))
    assert.equal(recent.mustReadAgain, true)
    assert.deepEqual(kinds(recent), [])
  }
  // Reading began after the position: what lies between is not known.
  const late = new RecentRecords(clock, saved)
  show(late, recs.slice(3), 3)
  assert.equal(late.mustReadAgain, true)
})

test('records are saved with their position once durable, and a changed file is refused', async () => {
  const clock = new TestClock()
  const path = join(tempFolder(), 'audit.jsonl')
  let keeper: RecentKeeper | null = null
  const ledger = await openLedger({
    ...{ path, tenant: '', replica: 'r', clock, ids: systemIds(clock) },
    onDurable: (rec, place) => keeper?.note(rec, place),
  })
  keeper = new RecentKeeper({
    path,
    clock,
    log: silentLog,
    head: () => ledger.head(),
    recent: new RecentRecords(clock),
  })
  await ledger.append({ kind: 'approval', approval: 'a1' })
  await ledger.append({ kind: 'admin' })
  await keeper.close()
  const saved = await readRecent(path)
  assert.deepEqual(saved?.ledger, { seq: 2, hash: ledger.head().hash })
  assert.deepEqual(
    saved?.records.map(({ approval }) => approval),
    ['a1'],
  )
  await ledger.close()
  const file = `${path}.recent.json`
  writeFileSync(file, readFileSync(file, 'utf8').replace('a1', 'a2'))
  assert.equal(await readRecent(path), null)
})
