import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { appendAnchor, appendCheckpoint, fillLedger, ledgerLines } from '@plat/testkit/ledger'
import { timeOfRecord, writeSegments } from '@plat/testkit/segments'
import { readCheckpointRecord } from '../proof/checkpoint.ts'
import { TreeGrower } from '../proof/grower.ts'
import { lastCheckpoint } from '../proof/stored-checkpoint.ts'
import { type EvidenceQuery, type Gathered, gatherEvidence } from './gather.ts'
import { type EvidenceHead, type EvidenceParts, sealEvidence } from './object.ts'
import { UNSIGNED_CHECKPOINT, verifyEvidence } from './verify.ts'

const signer = ephemeralSigner()
const trust = { keys: [signer.publicKey], hmacKey: null, logKeys: null }
let folder = ''

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
})
after(() => rmSync(folder, { recursive: true }))

/** Creates a signed ledger of this many records, and its evidence. */
async function ledger(
  name: string,
  { records = 30, anchoredBy = null }: { records?: number; anchoredBy?: LocalSigner | null } = {},
) {
  const path = join(folder, name)
  await fillLedger(path, records)
  if (anchoredBy !== null) {
    await appendCheckpoint(path, signer)
    await appendAnchor(path, anchoredBy)
    await fillLedger(path, 5)
  }
  await appendCheckpoint(path, signer)
  const lines = ledgerLines(path)
  const grower = await TreeGrower.open(path)
  await grower.grow({ seq: lines.length - 1, hash: JSON.parse(lines.at(-1) ?? '').hash })
  await grower.close()
  const checkpoint = (await lastCheckpoint(path))?.rec ?? assert.fail()
  const query = { from: 0, to: null, wants: () => true, checkpoint, maxBytes: 1_000_000 }
  const gather = (own: Partial<EvidenceQuery>) => gatherEvidence(path, { ...query, ...own })
  const got = async (own: Partial<EvidenceQuery>): Promise<Gathered> => {
    const found = await gather(own)
    return 'why' in found ? assert.fail(found.why) : found
  }
  return { gather, got }
}

function partsOf({ lines, proofs, from, to, checkpoint, anchor }: Gathered, about = {}): EvidenceParts {
  const read = readCheckpointRecord(checkpoint)
  const ledgerId = typeof read === 'string' ? assert.fail(read) : read.ledgerId
  const head: EvidenceHead = {
    ...{ evidence: 1, id: 'an-id', at: '', by: 'me', ledgerId, about, from, to, records: lines.length },
    ...{ checkpoint, anchor, keys: [] },
  }
  return { head, lines, proofs }
}

const judged = async (parts: EvidenceParts, by = signer) => verifyEvidence(await sealEvidence(parts, by), trust)

test('an unbroken run needs one proof, and a selection of records one for each run', async () => {
  const { got } = await ledger('runs')
  const whole = await got({ from: 3, to: 9 })
  assert.deepEqual([whole.lines.length, whole.proofs.map(({ seq }) => seq)], [7, [9]])
  const seqs = new Set(['2', '3', '4', '8', '10', '11'])
  const wants = (rec: Readonly<Record<string, unknown>>) => typeof rec.at === 'string' && seqs.size > 0
  const some = await got({
    wants: (
      (n = -1) =>
      (rec) =>
        wants(rec) && seqs.has(String(++n))
    )(),
  })
  assert.deepEqual(
    some.proofs.map(({ seq }) => seq),
    [4, 8, 11],
  )
  assert.equal(typeof (await judged(partsOf(whole))), 'object')
  assert.equal(typeof (await judged(partsOf(some, { kind: 'x' }))), 'object')
})

test('records that no checkpoint covers yet are omitted, and an empty selection is none', async () => {
  const { gather, got } = await ledger('late')
  const all = await got({})
  assert.deepEqual([all.from, all.to, all.lines.length], [0, Number(all.checkpoint.upTo), Number(all.checkpoint.size)])
  assert.deepEqual(await gather({ from: Number(all.checkpoint.size) }), { why: 'none' })
  assert.deepEqual(await gather({ wants: () => false }), { why: 'none' })
  const full = await gather({ maxBytes: 2000 })
  assert.ok('why' in full && full.why === 'too much' && full.seq > 0 && full.seq < 30)
})

test('records omitted, moved or inserted by a holder of the seal key are detected', async () => {
  const { got } = await ledger('ours')
  const parts = partsOf(await got({ from: 2, to: 8 }))
  const other = partsOf(await (await ledger('theirs', { records: 20 })).got({ from: 2, to: 8 }))
  const { head, lines, proofs } = parts
  const cases: [EvidenceParts, RegExp][] = [
    [{ ...parts, lines: lines.slice(1) }, /holds 6 records, and not 7/],
    [{ ...parts, lines: lines.slice(1), head: { ...head, records: 6 } }, /missing from its range/],
    [{ ...parts, lines: lines.toSpliced(3, 1), head: { ...head, records: 6, about: { a: 'b' } } }, /has no proof/],
    [{ ...parts, lines: lines.toReversed() }, /has no proof|out of order/],
    [{ ...parts, lines: [...other.lines.slice(0, 3), ...lines.slice(3)] }, /record 5 does not follow record 4/],
    [{ ...other, head }, /is not included under the root/],
    [{ ...parts, proofs: [] }, /record 8 has no proof/],
    [{ ...parts, proofs: proofs.map((proof) => ({ ...proof, inclusion: [] })) }, /is not included under the root/],
    [{ ...parts, head: { ...head, from: 3 } }, /missing|outside/],
    [{ ...parts, head: { ...head, from: 3, about: { a: 'b' } } }, /record 2 is outside of its range/],
    [{ ...parts, head: { ...head, checkpoint: other.head.checkpoint } }, /the checkpoint is of another ledger/],
    [{ ...parts, head: { ...head, ledgerId: 'x' } }, /the checkpoint is of another ledger/],
    [{ ...parts, head: { ...head, checkpoint: { ...head.checkpoint, size: 9 } } }, /do not say the same/],
    [{ ...parts, head: { ...head, anchor: { kind: 'anchor' } } }, /the anchor lacks/],
  ]
  for (const [wrong, why] of cases) assert.match(String(await judged(wrong)), why)
  const changed = lines.map((line) => Buffer.from(line.toString().replace('"seq":3,', '"seq":4,')))
  assert.match(String(await judged({ ...parts, lines: changed })), /line 3: the hash does not match/)
})

test('an anchored checkpoint proves the records it covers, and the log that contains it', async () => {
  const log = ephemeralSigner()
  const { got } = await ledger('anchored', { anchoredBy: log })
  const within = partsOf(await got({ from: 2, to: 8 }))
  const bytes = await sealEvidence(within, signer)
  const found = await verifyEvidence(bytes, { ...trust, logKeys: [log.publicKey] })
  assert.ok(typeof found === 'object' && found.anchored === true, String(found))
  assert.equal(Object(await verifyEvidence(bytes, trust)).anchored, null)
  assert.match(String(await verifyEvidence(bytes, { ...trust, logKeys: [signer.publicKey] })), /log/)
  const later = partsOf(await got({ from: 2 }))
  assert.deepEqual([later.head.anchor, Object(await judged(later)).anchored], [null, false])
  const { anchor } = within.head
  assert.match(String(await judged({ ...later, head: { ...later.head, anchor } })), /about another checkpoint/)
})

test('a seal or a checkpoint of another key proves nothing', async () => {
  const { got } = await ledger('keys')
  const parts = partsOf(await got({}))
  const stranger = ephemeralSigner()
  assert.match(String(await judged(parts, stranger)), /the seal is not signed by the given key/)
  const bytes = await sealEvidence(parts, stranger)
  const theirs = { ...trust, keys: [stranger.publicKey] }
  assert.match(String(await verifyEvidence(bytes, theirs)), /the checkpoint is not signed by the given key/)
  // Not forged, but nothing that the second key could verify.
  const both = { ...trust, keys: [signer.publicKey, ephemeralSigner('ML-DSA-44').publicKey] }
  assert.equal(await verifyEvidence(await sealEvidence(parts, signer), both), UNSIGNED_CHECKPOINT)
})

test('an object whose line counts differ from its head is refused', async () => {
  const { got } = await ledger('counts')
  const parts = partsOf(await got({}))
  const { head, lines } = parts
  assert.equal(typeof (await judged(parts)), 'object')
  const [line = Buffer.alloc(0)] = lines
  for (const others of [[], lines.slice(1), [...lines, line], Array.from({ length: 2000 }, () => line)])
    assert.equal(
      await judged({ ...parts, lines: others }),
      `it holds ${others.length} records, and not ${head.records} as it says`,
    )
  const large = { ...head, by: 'a'.repeat(1024 * 1024) }
  assert.equal(await judged({ ...parts, head: large }), 'its first line is not a head of an evidence object')
})

test('records are gathered from a range without segments that left, and from no range with one', async () => {
  const path = join(folder, 'left.jsonl')
  const { leave, files } = await writeSegments(path, { segments: 3, records: 12, signer })
  leave(1, { archive: 's3://bucket/two.jsonl', checkpoint: files.at(-1)?.lines[0] ?? '' })
  const checkpoint = (await lastCheckpoint(path))?.rec ?? assert.fail()
  const query = { from: 0, to: null, wants: () => true, checkpoint, maxBytes: 1_000_000 }
  const gather = (own: Partial<EvidenceQuery>) => gatherEvidence(path, { ...query, ...own })
  for (const to of [12, { at: timeOfRecord(12) }]) {
    const found = await gather({ to })
    assert.ok('lines' in found && found.lines.length === 13, JSON.stringify(to))
    assert.equal(typeof (await judged(partsOf(found))), 'object')
  }
  await assert.rejects(gather({}), /records 13 to 25 are archived/)
  await assert.rejects(gather({ from: 3, to: 13 }), /records 13 to 25 are archived/)
})
