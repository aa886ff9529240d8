import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { appendCheckpoint, fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'
import type { Head } from '../format.ts'
import { repairLedger } from '../writer/repair.ts'
import { TreeGrower } from './grower.ts'
import { receiptBeside, receiptFromLedger, verifyReceipt } from './receipt.ts'
import { checkpointsPath, lastCheckpoint, refuseRolledBack, treePath } from './stored-checkpoint.ts'

const signer = ephemeralSigner()
const trust = { keys: [signer.publicKey], hmacKey: null }
let folder = ''
let path = ''
let lines: string[] = []

/** Grows the tree up to record `seq`, as a separate process would. */
async function grow(ledger: string, seq: number, hash = headAt(seq).hash): Promise<string> {
  const grower = await TreeGrower.open(ledger)
  try {
    return await grower.grow({ seq, hash })
  } finally {
    await grower.close()
  }
}

function headAt(seq: number): Head {
  return { seq, hash: JSON.parse(lines[seq] ?? '').hash }
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
  await fillLedger(path, 30)
  await appendCheckpoint(path, signer)
  await fillLedger(path, 12)
  await appendCheckpoint(path, signer)
  await fillLedger(path, 5)
  lines = ledgerLines(path)
})
after(() => rmSync(folder, { recursive: true }))

/** Copies the ledger without the files beside it. */
function copy(name: string): string {
  const file = join(folder, name)
  copyFileSync(path, file)
  return file
}

const LAST = 44

test('the tree grows by the written records, and checkpoints are copied beside the ledger', async () => {
  const file = copy('grows.jsonl')
  assert.equal(await grow(file, 30), JSON.parse(lines[31] ?? '').rec.root)
  assert.equal(readFileSync(checkpointsPath(file), 'utf8'), '')
  assert.equal(await grow(file, 43), JSON.parse(lines[LAST] ?? '').rec.root)
  assert.equal(readFileSync(checkpointsPath(file), 'utf8'), `${lines[31]}\n`)
  await grow(file, 46)
  assert.equal(readFileSync(checkpointsPath(file), 'utf8'), `${lines[31]}\n${lines[LAST]}\n`)
  // Half of a line, as after a crash, and a missing tree: rebuilt without duplicates.
  writeFileSync(checkpointsPath(file), `${lines[31]}\n${lines[LAST]?.slice(0, 50)}`)
  rmSync(treePath(file))
  await grow(file, 48)
  assert.equal(readFileSync(checkpointsPath(file), 'utf8'), `${lines[31]}\n${lines[LAST]}\n`)
  assert.equal((await lastCheckpoint(file))?.seq, LAST)
})

test('a tree is not grown over a file that was modified', async () => {
  const file = copy('changed.jsonl')
  await assert.rejects(grow(file, 40, 'a'.repeat(64)), /no longer holds record 40/)
  writeLines(file, lines.slice(0, 40))
  await assert.rejects(grow(file, 40), /no longer holds record 40/)
})

test('every record that a checkpoint covers has a receipt, from the files beside and from the ledger alone', async () => {
  const file = copy('receipts.jsonl')
  await grow(file, 48)
  for (let seq = 0; seq < LAST; seq++) {
    const receipt = await receiptBeside(file, seq)
    assert.ok(typeof receipt !== 'string')
    assert.deepEqual(await receiptFromLedger(path, seq), receipt)
    assert.equal(receipt.line, lines[seq])
    const found = verifyReceipt(JSON.parse(JSON.stringify(receipt)), trust)
    assert.ok(typeof found !== 'string', String(found))
    assert.deepEqual({ ...found, ledgerId: '' }, { seq, hash: headAt(seq).hash, ledgerId: '', size: 44, signed: true })
  }
  for (const make of [receiptBeside, receiptFromLedger]) {
    assert.equal(await make(file, LAST), 'no checkpoint')
    assert.equal(await make(file, 49), 'no checkpoint')
    assert.equal(await make(file, 50), 'no record')
  }
})

test('a modified receipt is refused, and so is one of another key', async () => {
  const receipt = await receiptFromLedger(path, 17)
  assert.ok(typeof receipt !== 'string')
  const other = await receiptFromLedger(path, 18)
  assert.ok(typeof other !== 'string')
  const stranger = { keys: [ephemeralSigner().publicKey], hmacKey: null }
  const cases = [
    { wrong: { ...receipt, line: receipt.line.replace('alice', 'mallory') }, what: /hash does not match/ },
    { wrong: { ...receipt, line: other.line }, what: /record 18, not 17/ },
    { wrong: { ...receipt, line: other.line, seq: 18 }, what: /is not included/ },
    { wrong: { ...receipt, inclusion: other.inclusion.toReversed() }, what: /is not included/ },
    { wrong: { ...receipt, inclusion: receipt.inclusion.slice(1) }, what: /is not included/ },
    { wrong: { ...receipt, checkpoint: { ...receipt.checkpoint, root: 'a'.repeat(64) } }, what: /do not say the same/ },
    { wrong: { ...receipt, inclusion: 'none' }, what: /not a receipt/ },
    { wrong: null, what: /not a receipt/ },
  ]
  for (const { wrong, what } of cases) assert.match(String(verifyReceipt(wrong, trust)), what)
  assert.match(String(verifyReceipt(receipt, stranger)), /not signed by the given key/)
  const unjudged = verifyReceipt(receipt, null)
  assert.ok(typeof unjudged !== 'string' && unjudged.signed === null)
})

test('a damaged tree beside the ledger yields no receipt', async () => {
  const file = copy('spoiled.jsonl')
  await grow(file, 48)
  const nodes = readFileSync(treePath(file))
  nodes.fill(7, 32, 64)
  writeFileSync(treePath(file), nodes)
  await assert.rejects(receiptBeside(file, 0), /is not included under the root/)
})

test('a ledger that was restored to an older state, or replaced, is refused', async () => {
  const file = copy('older.jsonl')
  await refuseRolledBack(file)
  await grow(file, 48)
  await refuseRolledBack(file)
  writeLines(file, lines.slice(0, 40))
  await assert.rejects(refuseRolledBack(file), /has no record 44, which was a checkpoint.*Put the right one back/)
  rmSync(file)
  await assert.rejects(refuseRolledBack(file), /has no record 44/)
  await fillLedger(file, 60)
  await assert.rejects(refuseRolledBack(file), /has another record 44/)
})

test('a repair that cuts off checkpoints sets the files about them aside, and the ledger works', async () => {
  const file = copy('repaired.jsonl')
  await grow(file, 48)
  const spoiled = lines.with(40, (lines[40] ?? '').replace('alice', 'mallo'))
  writeLines(file, spoiled)
  const repaired = await repairLedger({ path: file, clock: systemClock, ids: systemIds(systemClock) })
  assert.equal(repaired.entries, 40)
  assert.ok(existsSync(`${checkpointsPath(file)}.damaged-40`) && !existsSync(treePath(file)))
  await refuseRolledBack(file)
  const after = ledgerLines(file)
  await grow(file, after.length - 1, JSON.parse(after.at(-1) ?? '').hash)
  assert.equal((await lastCheckpoint(file))?.seq, 31)
})
