import assert from 'node:assert/strict'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { before, beforeEach, test } from 'node:test'
import { systemClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { lineOf, type SegmentedLedger, timeOfRecord, writeSegments } from '@plat/testkit/segments'
import {
  compressInThread,
  gatherEvidence,
  LedgerReader,
  LedgerSequence,
  LineReader,
  lastCheckpoint,
  ledgerPage,
  receiptBeside,
  receiptFromLedger,
  searchLedger,
  segmentPath,
  selectorOf,
  tailLedger,
  verifyLedger,
  verifyReceipt,
} from './index.ts'
import { MerkleTree } from './proof/tree.ts'

const RECORDS = 4000
const ALL = { from: 0, to: null, limit: 100_000, wants: () => true } as const
const signer = ephemeralSigner()
let ledger: SegmentedLedger
let lines: string[] = []
let count = 0

/** Three sealed segments and the active file. */
async function segmented(records: number): Promise<SegmentedLedger> {
  return await writeSegments(join(tempFolder(), `audit-${count++}.jsonl`), { segments: 3, records, signer })
}

before(async () => {
  ledger = await segmented(RECORDS)
  lines = ledger.files.flatMap((file) => file.lines)
})

/** Bytes that file handles have read. */
let readBytes = 0
before(async () => {
  const file = await open(ledger.path)
  const prototype = Object.getPrototypeOf(file)
  await file.close()
  const { read } = prototype
  prototype.read = async function counted(...args: unknown[]) {
    const result = await read.apply(this, args)
    readBytes += result.bytesRead
    return result
  }
})
beforeEach(() => {
  readBytes = 0
})

/** Each reads the `seq` of the records from a moment on, at most `limit`. */
type Reader = (ledger: SegmentedLedger, from: number, limit: number) => Promise<readonly number[]>

const readers: Readonly<Record<string, Reader>> = {
  tail: async ({ path }, from, limit) => await taken(tailLedger(path, { from }), limit),
  'admin pages, simulate and sessions': async ({ path }, from, limit) =>
    seqs((await ledgerPage(path, { ...ALL, from, limit })).items),
  'pages from a time': async ({ path }, from, limit) =>
    seqs((await ledgerPage(path, { ...ALL, from: { at: timeOfRecord(from) }, limit })).items),
  'pages of the newest first': async ({ path }, from, limit) =>
    seqs((await ledgerPage(path, { ...ALL, to: from + limit - 1, limit, newestFirst: true })).items).toReversed(),
  search: async ({ path }, from, limit) => await taken(searchLedger(path, { ...ALL, from, limit }), limit),
  'search for the newest': async ({ path }, from, limit) => {
    const found = searchLedger(path, { ...ALL, to: from + limit - 1, limit, newestFirst: true })
    return (await taken(found, limit)).toReversed()
  },
  sinks: async ({ path, files }, from, limit) => {
    const all = files.flatMap((file) => file.lines)
    const { hash } = JSON.parse(all[from - 1] ?? '{}')
    const reader = await LedgerReader.open(path, from === 0 ? null : { seq: from - 1, hash })
    const found: number[] = []
    for (;;) {
      const next = await reader.next({ upTo: all.length - 1, count: limit - found.length, bytes: 1_000_000 })
      for (const line of next) {
        found.push(line.seq)
        reader.take(line)
      }
      if (next.length === 0 || found.length === limit) break
    }
    await reader.close()
    return found
  },
  'offline edges': async ({ path, files }, from, limit) => {
    const upTo = files.flatMap((file) => file.lines).length - 1
    const reader = new LineReader(path)
    const found: number[] = []
    while (found.length < limit && from + found.length <= upTo) {
      const wanted = { from: from + found.length, upTo, maxRecords: limit - found.length, maxBytes: 1_000_000 }
      const { bytes } = await reader.read(wanted)
      for (const line of bytes.toString().trimEnd().split('\n')) found.push(JSON.parse(line).seq)
    }
    return found
  },
}

function seqs(items: readonly { readonly seq: number }[]): readonly number[] {
  return items.map(({ seq }) => seq)
}

async function taken(found: AsyncIterable<{ readonly seq: number }>, limit: number): Promise<readonly number[]> {
  const numbers: number[] = []
  for await (const { seq } of found) {
    if (numbers.push(seq) === limit) break
  }
  return numbers
}

/** `count` numbers from `first` on. */
function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

for (const [name, read] of Object.entries(readers)) {
  test(`${name}: all records of three segments and of the active file, in order`, async () => {
    const small = await segmented(40)
    const all = small.files.flatMap((file) => file.lines).length
    assert.deepEqual(await read(small, 0, all), range(0, all))
    const seam = small.files[2]?.first ?? 0
    for (const from of [1, seam - 1, seam, seam + 1, all - 3])
      assert.deepEqual(await read(small, from, 3), range(from, 3))
  })

  test(`${name}: a start in the middle of a segment reads a small part of it`, async () => {
    const from = (ledger.files[1]?.first ?? 0) + 1234
    assert.deepEqual(await read(ledger, from, 2), range(from, 2))
    const whole = lines.reduce((sum, line) => sum + line.length + 1, 0)
    // A chunk of each reader, and a line for each step of the binary search.
    const most = name.includes('first') || name.includes('newest') ? 700_000 : 1_500_000
    assert.ok(whole > 4_500_000 && readBytes < most, `${readBytes} bytes of ${whole}`)
  })
}

test('compressed segments are read by all readers, and verify', async () => {
  const small = await segmented(40)
  for (const index of [0, 2]) {
    const { first = 0 } = small.files[index] ?? {}
    assert.equal((await compressInThread(small.path, first, new AbortController().signal)).fault, null)
  }
  await using sequence = await LedgerSequence.open(small.path)
  assert.deepEqual(
    sequence.segments.map(({ file }) => file?.endsWith('.zst')),
    [true, false, true],
  )
  const all = small.files.flatMap((file) => file.lines).length
  for (const [name, read] of Object.entries(readers)) assert.deepEqual(await read(small, 0, all), range(0, all), name)
  for (const threads of [0, 2]) {
    const found = await verifyLedger(small.path, { strict: true, threads })
    assert.deepEqual([found.verdict, found.records], ['valid', all], found.message)
  }
  // One byte of a frame, then one of the table at the end.
  for (const back of [200, 3]) {
    const compressed = `${segmentPath(small.path, 0)}.zst`
    const bytes = readFileSync(compressed)
    writeFileSync(compressed, bytes.with(-back, (bytes.at(-back) ?? 0) ^ 1))
    for (const threads of [0, 2]) {
      const found = await verifyLedger(small.path, { threads })
      assert.deepEqual([found.verdict, found.exitCode], ['broken', 3], found.message)
      assert.ok(found.message.includes(compressed), found.message)
    }
    writeFileSync(compressed, bytes)
  }
})

test('proofs of records of all files verify, from the tree beside the ledger and from the ledger alone', async () => {
  const small = await segmented(40)
  const seams = small.files.flatMap(({ first, lines }) => [first, first + lines.length - 1])
  for (const seq of seams.slice(0, -1)) {
    for (const receiptOf of [receiptBeside, receiptFromLedger]) {
      const receipt = await receiptOf(small.path, seq)
      if (receipt === 'no checkpoint') assert.ok(seq >= 160, `record ${seq}`)
      else assert.ok(typeof verifyReceipt(receipt, null) !== 'string')
    }
  }
})

test('evidence has the records of all files with proofs', async () => {
  const small = await segmented(40)
  const checkpoint = (await lastCheckpoint(small.path))?.rec ?? {}
  const [from, to] = [small.files[1]?.first ?? 0, small.files[3]?.first ?? 0]
  const query = { from, to, wants: () => true, checkpoint, maxBytes: 1_000_000 }
  const found = await gatherEvidence(small.path, query)
  assert.ok('lines' in found)
  assert.deepEqual([found.from, found.to, found.lines.length], [from, to, to - from + 1])
})

test('a reader that follows goes on when the active file is sealed while it reads', async () => {
  const small = await segmented(40)
  const all = small.files.flatMap((file) => file.lines)
  const active = small.files.at(-1)
  const { hash, seq } = JSON.parse(all.at(-1) ?? '')
  const stop = new AbortController()
  const follow = { signal: stop.signal, clock: systemClock }
  const sink = await LedgerReader.open(small.path, { seq, hash })
  await using sequence = await LedgerSequence.open(small.path)
  assert.equal(await sequence.startOf(seq + 1), await sequence.size())
  const found: number[] = []
  for await (const line of tailLedger(small.path, { from: seq, follow })) {
    found.push(line.seq)
    if (found.length === 1) seal(small, active?.first ?? 0, { seq, hash })
    if (found.length === 3) stop.abort()
  }
  assert.deepEqual(found, [seq, seq + 1, seq + 2])
  const next = await sink.next({ upTo: seq + 2, count: 10, bytes: 1_000_000 })
  assert.deepEqual(seqs(next), [seq + 1, seq + 2])
  await sink.close()
  const page = await ledgerPage(small.path, { ...ALL, from: seq })
  assert.deepEqual(seqs(page.items), [seq, seq + 1, seq + 2])
})

/** Seals the active file as its writer does, and begins the next one with a record. */
function seal({ path, files }: SegmentedLedger, first: number, { seq, hash }: { seq: number; hash: string }): void {
  const size = seq + 1
  const ones = size.toString(2).replaceAll('0', '').length
  const subtrees = Array.from({ length: ones }, () => 'ab'.repeat(32))
  const active = files.at(-1)?.lines ?? []
  const end = lineOf(
    hash,
    {
      kind: 'segment',
      at: timeOfRecord(size),
      ledgerId: 'x',
      first,
      last: seq,
      head: hash,
      size,
      subtrees,
      open: [],
      root: new MerkleTree({ size, subtrees: subtrees.map((one) => Buffer.from(one, 'hex')) }).root(),
    },
    size,
  )
  writeFileSync(path, [...active, end.text].map((line) => `${line}\n`).join(''))
  renameSync(path, segmentPath(path, first))
  writeFileSync(path, `${lineOf(end.hash, { kind: 'admin', at: timeOfRecord(size + 1) }, size + 1).text}\n`)
}

test('a page of the newest first passes over segments that left, and one of a time range ends where it does', async () => {
  const small = await segmented(40)
  small.leave(1, { archive: null })
  const present = small.files.flatMap(({ first, lines }, index) => (index === 1 ? [] : range(first, lines.length)))
  const newest = await ledgerPage(small.path, { ...ALL, newestFirst: true })
  assert.deepEqual(seqs(newest.items).toReversed(), present)
  assert.deepEqual(seqs((await ledgerPage(small.path, ALL)).items), present)
  const [from, to] = [{ at: timeOfRecord(30) }, { at: timeOfRecord(90) }]
  for (const newestFirst of [false, true]) {
    const { items } = await ledgerPage(small.path, { ...ALL, from, to, newestFirst })
    assert.deepEqual(
      seqs(items).toSorted((a, b) => a - b),
      present.filter((seq) => seq >= 30 && seq <= 90),
    )
  }
})

test('pages of both orders go on where the one before ended, and an incomplete last line is not a record', async () => {
  const small = await segmented(40)
  const text = small.files.at(-1)?.lines.join('\n') ?? ''
  writeFileSync(small.path, `${text}\n{"hash":"`)
  const all = small.files.flatMap((file) => file.lines).length
  for (const newestFirst of [false, true]) {
    const found: number[] = []
    let [from, to]: [number, number | null] = [0, null]
    for (let pages = 0; pages < 100; pages++) {
      const page = await ledgerPage(small.path, { ...ALL, from, to, limit: 7, newestFirst })
      found.push(...seqs(page.items))
      if (page.next === null) break
      if (newestFirst) to = page.next
      else from = page.next
    }
    assert.deepEqual(newestFirst ? found.toReversed() : found, range(0, all))
  }
})

test('a selector finds records by their members and by text, and by nothing outside of the record', async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  const tool = 'say "hi" ü'
  const record = (seq: number) => (seq === 7 ? { tool, action: 'deny', facts: { agent: 'other' } } : {})
  const small = await writeSegments(path, { segments: 1, records: 10, record })
  const found = async (filter: Parameters<typeof selectorOf>[0]) => {
    const { matches, matchesLine } = selectorOf(filter)
    return seqs((await ledgerPage(path, { ...ALL, wants: matches, wantsLine: matchesLine })).items)
  }
  assert.deepEqual(await found({ tool }), [7])
  assert.deepEqual(await found({ denied: true }), [7])
  assert.deepEqual(await found({ text: '"hi" ü' }), [7])
  assert.deepEqual(await found({ call: 'call-2' }), [3, 4])
  assert.deepEqual(await found({ agent: 'other' }), [])
  assert.deepEqual(
    await found({ calls: true, namespace: 'default', agent: 'assistant' }),
    [2, 4, 6, 8, 12, 14, 16, 18, 20],
  )
  const { hash } = JSON.parse(small.files[0]?.lines[2] ?? '')
  assert.deepEqual(await found({ text: hash.slice(0, 20) }), [])
})
