import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { lineOf, timeOfRecord, writeSegments } from '@plat/testkit/segments'
import { ArchivedError, LedgerSequence, ListKeeper, leave, segmentsPath, verifyLedger } from '../index.ts'
import { type LeftState, lineOfLeft } from './left-segments.ts'
import { type LedgerSegment, readEntry } from './segment-entry.ts'

const signer = ephemeralSigner()
const key = join(tempFolder(), 'key.json')
writeFileSync(key, JSON.stringify(signer.publicJwk))
const LEFT = '2026-02-01T00:00:00Z'

/** A ledger of five sealed segments, of which so many of the first left; the list of before is kept. */
async function withLeft(count = 3) {
  const some = await writeSegments(join(tempFolder(), 'audit.jsonl'), { segments: 5, records: 12, signer })
  const { path, files } = some
  const list = new ListKeeper(path, null, {})
  await list.update()
  const older = readFileSync(segmentsPath(path))
  const leaving = { ledgerPath: path, list, files: null }
  await using sequence = await LedgerSequence.open(path)
  const checkpoint = files.at(-1)?.lines[0] ?? ''
  for (const segment of sequence.segments.slice(0, count)) {
    await leave(leaving, segment, { archive: `s3://bucket/${segment.first}`, checkpoint, left: LEFT })
  }
  const leftPath = `${path}.left.1.jsonl`
  const textOf = () => JSON.parse(readFileSync(segmentsPath(path), 'utf8'))
  return { ...some, older, leftPath, list, textOf }
}

/** Writes the entries of what left anew, as someone with access to both files can. */
function forge(
  { path, leftPath, textOf }: Awaited<ReturnType<typeof withLeft>>,
  change: (entries: LedgerSegment[]) => LedgerSegment[],
): void {
  const entries = readFileSync(leftPath, 'utf8').trimEnd().split('\n').map(entryIn)
  const lines: Buffer[] = []
  let head: LeftState['head'] = null
  for (const entry of change(entries)) {
    const line = lineOfLeft(entry, head)
    assert.ok(line !== null)
    lines.push(line.bytes)
    head = line.head
  }
  const bytes = Buffer.concat(lines)
  writeFileSync(leftPath, bytes)
  const text = textOf()
  const left = { ...text.left, bytes: bytes.length, count: lines.length, hash: head?.hash }
  writeFileSync(segmentsPath(path), JSON.stringify({ ...text, left }))
}

function entryIn(line: string): LedgerSegment {
  const entry = readEntry({ ...JSON.parse(line).rec, file: null })
  assert.ok(entry !== null && entry.offset !== null)
  return { ...entry, offset: entry.offset }
}

test('a list from before segments left changes no reader, and the next change of the list adds what left again', async () => {
  const { path, older, list, textOf } = await withLeft()
  const now = textOf()
  writeFileSync(segmentsPath(path), older)
  const found = await verifyLedger(path, { key, strict: true })
  assert.deepEqual(
    [found.exitCode, found.archived],
    [4, [{ first: 0, last: 38, archive: 's3://bucket/' }]],
    found.message,
  )
  await using sequence = await LedgerSequence.open(path)
  await assert.rejects(sequence.lineOf(5), (error) => error instanceof ArchivedError && error.segment.first === 0)
  assert.equal((await sequence.lineOf(40))?.line.includes('"seq":40,'), true)
  await list.update()
  assert.deepEqual(textOf(), now)
})

test('an older file of what left, one that is cut, and one that is missing are refused', async () => {
  const { path, leftPath, list } = await withLeft(2)
  const copy = join(dirname(path), 'copy')
  copyFileSync(leftPath, copy)
  await using sequence = await LedgerSequence.open(path)
  const [next] = sequence.segments
  assert.ok(next !== undefined)
  const leaving = { ledgerPath: path, list, files: null }
  await leave(leaving, next, { archive: null, checkpoint: '{}', left: LEFT })
  const whole = readFileSync(leftPath)
  const refused = async (expected: RegExp) => {
    await assert.rejects(LedgerSequence.open(path), expected)
    // The writer of the list does not replace what it cannot read.
    await assert.rejects(
      list.change((all) => all),
      expected,
    )
  }
  copyFileSync(copy, leftPath)
  await refused(
    /left\.1\.jsonl, which lists the segments that left, is damaged \(it has \d+ of \d+ bytes\): restore it from a copy/,
  )
  writeFileSync(leftPath, whole)
  truncateSync(leftPath, whole.length - 1)
  await refused(/is damaged \(it has/)
  rmSync(leftPath)
  await refused(/left\.1\.jsonl, which lists the segments that left, is missing: restore it from a copy/)
  writeFileSync(leftPath, whole)
  await (await LedgerSequence.open(path)).close()
})

test('a list that names another file of what left is refused, and so is one with places that cannot be', async () => {
  const { path, textOf } = await withLeft(1)
  const text = textOf()
  const { left, segments } = text
  const [first, ...others] = segments
  const wrong = [
    ...['..', '../x.left.1.jsonl', '/etc/passwd', 'other.jsonl.left.1.jsonl', 'audit.jsonl', ''].map((file) => ({
      left: { ...left, file },
    })),
    ...[{ bytes: -1 }, { count: 0 }, { hash: 7 }, { last: 1.5 }, { end: '9' }].map((one) => ({
      left: { ...left, ...one },
    })),
    { left: null },
    { v: 3 },
    ...[-1, 1].map((by) => ({ segments: [{ ...first, offset: first.offset + by }, ...others] })),
    { segments: [{ ...first, offset: -1 }, ...others] },
    { segments: [{ ...first, first: first.first - 1, file: null }, ...others] },
  ]
  for (const change of wrong) {
    writeFileSync(segmentsPath(path), JSON.stringify({ ...text, ...change }))
    const expected = /segments\.json is malformed: restore it from a copy/
    await assert.rejects(LedgerSequence.open(path), expected, JSON.stringify(change).slice(0, 100))
  }
})

test('a changed byte, and entries that were omitted, exchanged or forged with all hashes, are found by a verification', async () => {
  const changed = await withLeft()
  const bytes = readFileSync(changed.leftPath)
  for (const at of [10, 200, bytes.length >> 1, bytes.length - 3]) {
    writeFileSync(changed.leftPath, bytes.with(at, (bytes[at] ?? 0) ^ 1))
    await assert.rejects(verifyLedger(changed.path), /left\.1\.jsonl, which lists the segments that left, is damaged/)
  }
  const replaced = await withLeft()
  const list = readFileSync(segmentsPath(replaced.path))
  forge(replaced, (entries) =>
    entries.map((one) => ({ ...one, archive: 's3://bucke'.padEnd(one.archive?.length ?? 0) })),
  )
  writeFileSync(segmentsPath(replaced.path), list)
  await assert.rejects(verifyLedger(replaced.path), /is damaged \(its last line is another one\)/)
  const cases: readonly [string, (entries: LedgerSegment[]) => LedgerSegment[], RegExp][] = [
    [
      'omitted',
      ([first, , last]) => [first, last].filter((one) => one !== undefined),
      /^broken at record 13 .*records 13 to 38 are missing: they are neither here nor listed/,
    ],
    ['the first omitted', ([, ...others]) => others, /^broken at record 0 .*records 0 to 38 are missing/],
    ['the last omitted', (entries) => entries.slice(0, -1), /^broken at record 26 .*records 26 to 38 are missing/],
    [
      'of another history',
      (entries) => entries.map((one) => (one.first === 26 ? { ...one, record: another(one.record) } : one)),
      /^(?:broken|forked) at record \d+/,
    ],
    [
      'with the record of another segment',
      ([a, b, c]) => [a, { ...b, record: a?.record ?? '' }, c].filter(isEntry),
      /^broken at record 13 .*no valid segment record/,
    ],
    [
      'with another checkpoint',
      (entries) =>
        entries.map((one) => ({ ...one, checkpoint: one.checkpoint?.replace(/"jws":"[^"]+\./, '$&AAAA') ?? null })),
      /^broken at record 0 .*not signed by the given key/,
    ],
  ]
  for (const [what, change, expected] of cases) {
    const some = await withLeft()
    forge(some, change)
    const found = await verifyLedger(some.path, { key })
    assert.match(found.message, expected, what)
    assert.ok(found.exitCode === 3 || found.exitCode === 5, what)
  }
})

function isEntry(value: Partial<LedgerSegment> | undefined): value is LedgerSegment {
  return value?.first !== undefined
}

/** A `segment` record with another time, consistent by itself. */
function another(record: string): string {
  const { prev, rec, seq } = JSON.parse(record)
  return lineOf(prev, { ...rec, at: timeOfRecord(9999) }, seq).text
}
