import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { openLedger } from '../index.ts'
import { type LedgerSegment, segmentsPath } from '../sequence/segment-entry.ts'
import { lineOf } from '../testing/line.ts'
import { TreeGrower } from './grower.ts'
import { treePath } from './stored-checkpoint.ts'

/** A ledger of which the first of two segments left, and its root. */
async function withLeft() {
  const path = join(tempFolder(), 'audit.jsonl')
  const clock = new TestClock()
  const sealing = { bytes: 3000, seconds: 0 }
  const ledger = await openLedger({ path, tenant: '', replica: 'r', clock, ids: systemIds(clock), sealing })
  const segments = (): LedgerSegment[] => JSON.parse(readFileSync(segmentsPath(path), 'utf8')).segments
  const isListed = () => {
    try {
      return segments().length >= 2
    } catch {
      return false
    }
  }
  await until(isListed, 'two segments', async () => void (await ledger.append({ kind: 'admin' })))
  const head = await ledger.append({ kind: 'admin' })
  await ledger.close()
  const grower = await TreeGrower.open(path)
  const root = await grower.grow(head)
  await grower.close()
  const [first, ...others] = segments()
  assert.ok(first !== undefined)
  const change = (segment: Partial<LedgerSegment>) => {
    const left = { ...first, file: null, left: '2026-01-01T00:00:00Z', ...segment }
    writeFileSync(segmentsPath(path), JSON.stringify({ v: 1, segments: [left, ...others] }))
    rmSync(treePath(path), { force: true })
  }
  change({})
  rmSync(join(dirname(path), first.file ?? ''))
  const grow = async () => {
    await using opened = new AsyncDisposableStack()
    const again = opened.adopt(await TreeGrower.open(path), (one) => one.close())
    return await again.grow(head)
  }
  return { path, first, root, change, grow }
}

test('the tree of a ledger whose first segment left has the root of all records', async () => {
  const { root, grow } = await withLeft()
  assert.equal(await grow(), root)
})

test('a tree is not rebuilt from a list that states another history, and the message says what to do', async () => {
  const { path, first, change, grow } = await withLeft()
  const { prev, rec, seq } = JSON.parse(first.record)
  // Consistent by itself: only the next record and the checkpoint contradict it.
  const forged = lineOf(prev, JSON.stringify({ ...rec, at: `${rec.at.slice(0, -2)}9Z` }), seq).text.trimEnd()
  change({ record: forged })
  const advice = new RegExp(
    `tree cannot be rebuilt: .* look with: plat audit verify ${path}; then restore what differs`,
  )
  await assert.rejects(grow(), advice)
  change({ record: first.record.replace('"first":0', '"first":1') })
  await assert.rejects(grow(), /states a wrong record for that of record 0, which left: restore both files from a copy/)
  const size = seq + 2
  const wrong = { rec: { size, root: 'a'.repeat(64) } }
  change({ checkpoint: JSON.stringify(wrong) })
  await assert.rejects(grow(), advice)
})
