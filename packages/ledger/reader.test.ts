import assert from 'node:assert/strict'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillLedger } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { LedgerReader } from './reader.ts'

/** More bytes than these ledgers have. */
const MANY = 1_000_000

async function ledger(records: number) {
  const dir = tempFolder()
  const path = join(dir, 'audit.jsonl')
  await fillLedger(path, records)
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  return { path, lines, last: lines.length - 1 }
}

test('records are returned in order, repeatedly until taken, and never past the durable ones', async (t) => {
  const { path, lines, last } = await ledger(20)
  const reader = await LedgerReader.open(path, null)
  t.after(() => reader.close())
  const first = await reader.next({ upTo: last, count: 3, bytes: MANY })
  assert.deepEqual(
    first.map(({ text }) => text),
    lines.slice(0, 3),
  )
  assert.deepEqual(await reader.next({ upTo: last, count: 3, bytes: MANY }), first)
  const second = first[1]
  assert.ok(second !== undefined)
  reader.take(second)
  const rest = await reader.next({ upTo: 6, count: 100, bytes: MANY })
  assert.deepEqual(
    rest.map(({ seq }) => seq),
    [2, 3, 4, 5, 6],
  )
  assert.deepEqual(await reader.next({ upTo: 1, count: 100, bytes: MANY }), [])
})

test('a reader resumes after a known record, and sees later writes', async (t) => {
  const { path, lines } = await ledger(20)
  const seven = JSON.parse(lines[7] ?? '')
  const reader = await LedgerReader.open(path, seven)
  t.after(() => reader.close())
  const all = await reader.next({ upTo: 10_000, count: 10_000, bytes: MANY })
  assert.deepEqual(
    all.map(({ text }) => text),
    lines.slice(8),
  )
  const end = all.at(-1)
  assert.ok(end !== undefined)
  reader.take(end)
  const next = JSON.stringify({ hash: 'f'.repeat(64), prev: end.hash, rec: { kind: 'alert' }, seq: end.seq + 1, v: 1 })
  await appendFile(path, next.slice(0, 50))
  assert.deepEqual(await reader.next({ upTo: 10_000, count: 10, bytes: MANY }), [])
  await appendFile(path, `${next.slice(50)}\n`)
  assert.deepEqual(
    (await reader.next({ upTo: 10_000, count: 10, bytes: MANY })).map(({ text }) => text),
    [next],
  )
})

test('a ledger without the record to resume after is refused', async () => {
  const { path, lines, last } = await ledger(5)
  await assert.rejects(
    LedgerReader.open(path, { seq: 3, hash: 'a'.repeat(64) }),
    /does not hold record 3 with hash a+$/,
  )
  await assert.rejects(LedgerReader.open(path, { seq: last + 1, hash: 'a'.repeat(64) }), /does not hold record/)
  const { seq, hash } = JSON.parse(lines[last] ?? '')
  await writeFile(
    path,
    lines.slice(0, 2).map((line) => `${line}\n`),
  )
  await assert.rejects(LedgerReader.open(path, { seq, hash }), /does not hold record/)
})

test('no more bytes are read than requested, except for the first record', async (t) => {
  const { path, lines, last } = await ledger(20)
  const reader = await LedgerReader.open(path, null)
  t.after(() => reader.close())
  const three = lines.slice(0, 3).join('\n').length + 1
  const read = async (bytes: number) => (await reader.next({ upTo: last, count: 100, bytes })).length
  assert.deepEqual([await read(three), await read(three - 1), await read(1)], [3, 2, 1])
})

test('a malformed line is reported and not skipped', async (t) => {
  const { path } = await ledger(2)
  await appendFile(path, 'no record\n')
  const reader = await LedgerReader.open(path, null)
  t.after(() => reader.close())
  await assert.rejects(reader.next({ upTo: 10_000, count: 100, bytes: MANY }), /byte \d+ begins no record/)
})
