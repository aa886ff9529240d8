import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { fillLedger, ledgerLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { staticSource } from '@plat/tokens'
import { LineReader } from './read.ts'
import { followSegment, NO_RECORD, readSegment, type Segment, sealIdOf, segmentBytes } from './segment.ts'
import { readSeal, readSegmentReceipt, type SegmentSeal, signSeal, signSegmentReceipt } from './statement.ts'

const AT = '2026-01-01T00:00:00.000000Z'
const signer = ephemeralSigner()

/** A ledger of ten records, and segments of it. */
async function ledger() {
  const dir = tempFolder()
  const path = join(dir, 'audit.jsonl')
  await fillLedger(path, 9)
  const { ledgerId } = JSON.parse(ledgerLines(path)[0] ?? '').rec
  const reader = new LineReader(path)
  const segment = async (from: number, count: number, change: Partial<SegmentSeal> = {}): Promise<Buffer> => {
    const read = await reader.read({ from, upTo: 9, maxRecords: count, maxBytes: 1e6 })
    const { prev, head, bytes } = read
    const to = from + read.records - 1
    const seal = { edge: 'north', ledgerId, from, to, prev, head, bytes: bytes.length, since: AT, at: AT, ...change }
    return segmentBytes(await signSeal(signer, seal), bytes)
  }
  return { path, reader, segment, lines: ledgerLines(path) }
}

function whole(bytes: Buffer): Segment {
  const segment = readSegment(bytes)
  assert.ok(typeof segment !== 'string', String(segment))
  return segment
}

test('a segment contains the lines of the ledger byte by byte, and its chain matches from seal to seal', async () => {
  const { segment, lines } = await ledger()
  const { seal, lines: held } = whole(await segment(3, 4))
  assert.deepEqual([seal.from, seal.to], [3, 6])
  assert.equal(
    held.toString(),
    lines
      .slice(3, 7)
      .map((line) => `${line}\n`)
      .join(''),
  )
  const followed = followSegment(whole(await segment(3, 4)), 4)
  assert.ok(typeof followed !== 'string')
  assert.equal(followed.hash, JSON.parse(lines[4] ?? '').hash)
  assert.equal(followed.after.toString(), `${lines[5]}\n${lines[6]}\n`)
  const before = followSegment(whole(await segment(3, 4)), 2)
  assert.ok(typeof before !== 'string')
  assert.deepEqual([before.hash, before.after.length], [seal.prev, seal.bytes])
  const past = followSegment(whole(await segment(0, 4)), 7)
  assert.ok(typeof past !== 'string')
  assert.deepEqual([past.hash, past.after.length], [null, 0])
})

test('a changed byte, an omitted, moved or added line, and a seal over other content are detected', async () => {
  const { segment, lines } = await ledger()
  const text = (await segment(2, 5)).toString('latin1')
  const [seal = '', ...body] = text.split('\n')
  const rebuilt = async (pieces: readonly string[]) => {
    const claims = readSeal(seal)?.says
    assert.ok(claims !== undefined)
    const bytes = Buffer.from(pieces.map((line) => `${line}\n`).join(''))
    return followSegment(whole(segmentBytes(await signSeal(signer, { ...claims, bytes: bytes.length }), bytes)), 1)
  }
  const five = body.slice(0, 5)
  assert.notEqual(typeof (await rebuilt(five)), 'string')
  assert.match(
    String(await rebuilt(five.with(2, (five[2] ?? '').replace('notes', 'motes')))),
    /does not match the line/,
  )
  assert.match(String(await rebuilt(five.toSpliced(2, 1))), /missing or out of place/)
  assert.match(String(await rebuilt(five.slice(0, 4))), /it ends before record 6/)
  assert.match(String(await rebuilt([...five, lines[7] ?? ''])), /it ends before record 8/)
  assert.match(String(await rebuilt([five[1] ?? '', five[0] ?? '', ...five.slice(2)])), /out of place/)
  assert.match(String(followSegment(whole(await segment(2, 5, { prev: 'a'.repeat(64) })), 1)), /does not follow/)
  assert.match(
    String(followSegment(whole(await segment(2, 5, { head: 'a'.repeat(64) })), 1)),
    /not the one that the seal names/,
  )
  assert.match(String(followSegment(whole(await segment(0, 5, { ledgerId: 'other' })), -1)), /another ledger/)
  assert.match(String(followSegment(whole(await segment(0, 5, { prev: 'a'.repeat(64) })), -1)), /before the first one/)
})

test('a truncated segment is incomplete at every length, and a longer one is malformed', async () => {
  const { segment } = await ledger()
  const bytes = await segment(0, 3)
  for (let length = 0; length < bytes.length; length++)
    assert.equal(readSegment(bytes.subarray(0, length)), 'incomplete')
  assert.equal(readSegment(Buffer.concat([bytes, Buffer.from('{}\n')])), 'malformed')
  assert.equal(readSegment(Buffer.from('no segment\n')), 'malformed')
  assert.equal(readSegment(Buffer.alloc(10_000, 'x')), 'malformed')
})

test('seals and receipts are signed, and not interchangeable', async () => {
  const seal = {
    edge: 'north',
    ledgerId: 'l',
    from: 0,
    to: -1,
    prev: NO_RECORD.hash,
    head: NO_RECORD.hash,
    bytes: 0,
    since: AT,
    at: AT,
  }
  const text = await signSeal(signer, seal)
  const receipt = {
    collector: 'hub',
    edge: 'north',
    ledgerId: 'l',
    upTo: -1,
    head: NO_RECORD.hash,
    seal: sealIdOf(text),
    at: AT,
  }
  const answer = await signSegmentReceipt(signer, receipt)
  const ours = staticSource([signer.publicKey])
  const others = staticSource([ephemeralSigner().publicKey])
  assert.deepEqual(readSeal(text)?.says, seal)
  assert.deepEqual([readSeal(text)?.isSignedBy(ours), readSeal(text)?.isSignedBy(others)], [true, false])
  assert.deepEqual(readSegmentReceipt(answer)?.says, receipt)
  assert.deepEqual(
    [readSegmentReceipt(answer)?.isSignedBy(ours), readSegmentReceipt(answer)?.isSignedBy(others)],
    [true, false],
  )
  assert.deepEqual([readSeal(answer), readSegmentReceipt(text)], [null, null])
  const forged = text.replace(/\.[^.]+$/, (signature) => `.${'A'.repeat(signature.length - 1)}`)
  assert.equal(readSeal(forged)?.isSignedBy(ours), false)
  for (const wrong of [
    { to: -2 },
    { from: -1 },
    { from: 0.5 },
    { head: 'x' },
    { edge: '' },
    { at: 'soon' },
    { bytes: -1 },
  ]) {
    assert.equal(readSeal(await signSeal(signer, { ...seal, ...wrong })), null, JSON.stringify(wrong))
  }
})

test('lines are read up to the durable ones, limited by number and bytes, and only unmodified', async () => {
  const { path, reader, lines } = await ledger()
  const read = (from: number, more: object = {}) =>
    reader.read({ from, upTo: 9, maxRecords: 100, maxBytes: 1e6, ...more })
  assert.equal((await read(0)).records, 10)
  assert.equal((await read(4, { upTo: 5 })).records, 2)
  assert.equal((await read(4, { maxRecords: 3 })).records, 3)
  assert.equal((await read(1, { maxBytes: Buffer.byteLength(`${lines[1]}\n${lines[2]}\n`) })).records, 2)
  assert.equal((await read(1, { maxBytes: 10 })).records, 0)
  await assert.rejects(read(10, { upTo: 12 }), /has no record 10/)
  assert.equal(await reader.hashOf(7), JSON.parse(lines[7] ?? '').hash)
  assert.equal(await reader.hashOf(10), null)
  await writeFile(path, readFileSync(path, 'utf8').replace('"argsBytes":21', '"argsBytes":22'))
  await assert.rejects(read(0), /no longer holds record 1 as it was written/)
})
