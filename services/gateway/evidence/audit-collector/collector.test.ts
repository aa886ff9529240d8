import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { ephemeralSigner, type PublicKey } from '@plat/keys'
import { MerkleTree, openLedger, readSegmentReceipt, verifyLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { openFileJournal } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { staticSource } from '@plat/tokens'
import { Collector, type CollectorParts, type SegmentResult } from './collector.ts'
import { EdgePositions } from './positions.ts'
import { EdgeStore } from './store.ts'
import { type TestEdge, testEdge } from './testing/edge.ts'

const hub = ephemeralSigner()

/** A collector that can be opened repeatedly on the same folder, with its metrics and records. */
async function setUp(t: TestContext, edges: Readonly<Record<string, PublicKey>>, more: Partial<CollectorParts> = {}) {
  const dir = join(tempFolder(), 'edges')
  const clock = new TestClock()
  const counted: string[] = []
  const seqs: Record<string, number> = {}
  const path = join(tempFolder(), 'audit.jsonl')
  const ledger = await openLedger({ path, tenant: '', replica: 'hub', clock, ids: systemIds(clock) })
  t.after(() => ledger.close())
  const opened: EdgePositions[] = []
  t.after(() => Promise.all(opened.map((places) => places.close())))
  const open = async () => {
    await opened.pop()?.close()
    const places = await EdgePositions.open({ path: `${dir}.jsonl`, clock, log: silentLog })
    opened.push(places)
    const known = Object.entries(edges).map(async ([edge, key]) => {
      const store = await EdgeStore.open({ edge, dir, places })
      return [edge, { keys: staticSource([key]), store }] as const
    })
    return new Collector({
      id: 'hub',
      edges: new Map(await Promise.all(known)),
      maxSegmentBytes: 1_000_000,
      signer: async () => hub,
      ledger,
      clock,
      log: silentLog,
      metrics: {
        segment: (result) => void counted.push(result),
        refused: (reason) => void counted.push(reason),
        edgeSeq: (edge, seq) => {
          seqs[edge] = seq
        },
      },
      ...more,
    })
  }
  const records = () =>
    readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).rec)
  const stored = (edge = 'north') => readFileSync(join(dir, edge, 'ledger.jsonl'), 'utf8')
  return { dir, open, counted, seqs, records, stored }
}

function upTo(result: SegmentResult): number {
  assert.equal(result.kind, 'receipt', JSON.stringify(result))
  return result.kind === 'receipt' ? result.receipt.upTo : Number.NaN
}

function reason(result: SegmentResult): string {
  return result.kind === 'refused' ? result.reason : result.kind
}

const text = (edge: TestEdge, to: number) =>
  edge
    .lines()
    .slice(0, to + 1)
    .map((line) => `${line}\n`)
    .join('')

test('segments are stored unchanged, and each gets a receipt for its seal', async (t) => {
  const edge = await testEdge(30)
  const { open, stored, counted, seqs, records } = await setUp(t, { north: edge.signer.publicKey })
  const collector = await open()
  assert.deepEqual(seqs, { north: -1 })
  assert.equal(upTo(await collector.take(await edge.question(29))), -1)
  assert.equal(upTo(await collector.take(await edge.segment(0, 9))), 9)
  const result = await collector.take(await edge.segment(10, 24))
  assert.equal(upTo(result), 24)
  assert.equal(stored(), text(edge, 24))
  assert.equal(upTo(await collector.take(await edge.question(29))), 24)
  assert.deepEqual([counted, seqs], [['taken', 'taken'], { north: 24 }])
  const receipt = result.kind === 'receipt' ? readSegmentReceipt(result.text) : null
  assert.equal(receipt?.isSignedBy(staticSource([hub.publicKey])), true)
  assert.deepEqual([receipt?.says.collector, receipt?.says.head], ['hub', JSON.parse(edge.lines()[24] ?? '').hash])
  const anchors = records().filter(({ kind }) => kind === 'anchor')
  assert.deepEqual(
    anchors.map(({ edge: of, upTo: to, head }) => [of, to, head]),
    [9, 24].map((seq) => ['north', seq, JSON.parse(edge.lines()[seq] ?? '').hash]),
  )
})

test('a duplicate is acknowledged again and not stored twice; an overlapping segment adds its new records', async (t) => {
  const edge = await testEdge(30)
  const { open, stored, counted } = await setUp(t, { north: edge.signer.publicKey })
  const collector = await open()
  const first = await edge.segment(0, 9)
  const copies = await Promise.all([first, first, first].map((bytes) => collector.take(Buffer.from(bytes))))
  assert.deepEqual(copies.map(upTo), [9, 9, 9])
  assert.equal(upTo(await collector.take(await edge.segment(3, 5))), 9)
  assert.equal(upTo(await collector.take(await edge.segment(5, 14))), 14)
  assert.equal(upTo(await collector.take(await edge.segment(0, 20))), 20)
  assert.equal(stored(), text(edge, 20))
  assert.deepEqual(counted.toSorted(), ['duplicate', 'duplicate', 'duplicate', 'taken', 'taken', 'taken'])
})

test('tampered, unsigned, unknown, reordered, cut and oversized segments are refused, and none of their lines is stored', async (t) => {
  // Shows D3.exposition.collectorRefused.signature.
  const [edge, south] = [await testEdge(30), await testEdge(9, 'south')]
  const { open, stored, counted, records } = await setUp(t, { north: edge.signer.publicKey })
  const collector = await open()
  await collector.take(await edge.segment(0, 4))
  const good = await edge.segment(5, 9)
  const tampered = Buffer.from(good)
  tampered.write('MOTES', tampered.indexOf('notes', tampered.indexOf('\n')))
  const cases: Readonly<Record<string, readonly [Buffer, string]>> = {
    'a changed byte': [tampered, 'chain'],
    'another prev': [await edge.segment(5, 9, { prev: 'a'.repeat(64) }), 'chain'],
    'another head': [await edge.segment(5, 9, { head: 'a'.repeat(64) }), 'chain'],
    'another number': [await edge.segment(5, 9, { to: 10 }), 'chain'],
    'another key': [await edge.segment(5, 9, {}, ephemeralSigner()), 'signature'],
    'an unknown edge': [await south.segment(0, 5), 'edge'],
    'an edge under the name of another': [await south.segment(0, 5, { edge: 'north' }), 'signature'],
    'a later segment': [await edge.segment(10, 14), 'gap'],
    'no segment': [Buffer.from('hello\n'), 'malformed'],
    'half of it': [good.subarray(0, good.length - 10), 'incomplete'],
    'more than is sealed': [Buffer.concat([good, good.subarray(good.indexOf('\n') + 1)]), 'malformed'],
    'too many bytes': [Buffer.alloc(1_000_001), 'size'],
  }
  for (const [name, [bytes, expected]] of Object.entries(cases)) {
    assert.equal(reason(await collector.take(bytes)), expected, name)
  }
  assert.equal(stored(), text(edge, 4))
  const refused = Object.values(cases).flatMap(([, why]) => (why === 'incomplete' ? [] : ['refused', why]))
  assert.deepEqual(counted, ['taken', ...refused])
  assert.equal(records().filter(({ kind }) => kind === 'alert').length, 0)
  assert.equal(upTo(await collector.take(good)), 9)
})

test('a second history of an edge is a fork: refused at any overlap with the first, and recorded once', async (t) => {
  // Shows D3.exposition.collectorRefused.fork.
  const [one, two] = [await testEdge(20), await testEdge(20)]
  const { open, stored, counted, records } = await setUp(t, { north: one.signer.publicKey })
  const collector = await open()
  await collector.take(await one.segment(0, 9))
  // The same key over another ledger, which may even claim the first one's id.
  const claims = { ledgerId: one.ledgerId }
  const forks = [
    await two.segment(0, 9, {}, one.signer),
    await two.segment(3, 7, claims, one.signer),
    await two.segment(8, 12, claims, one.signer),
    await two.segment(10, 12, claims, one.signer),
    await two.segment(10, 12, claims, one.signer),
  ]
  for (const bytes of forks) assert.equal(reason(await collector.take(bytes)), 'fork')
  assert.equal(stored(), text(one, 9))
  assert.deepEqual(counted.slice(1, 3), ['refused', 'fork'])
  const alerts = records().filter(({ kind }) => kind === 'alert')
  assert.equal(alerts.length, 3)
  assert.match(alerts[0].reason, /^fork: the stored ledger is /)
  assert.equal(upTo(await collector.take(await one.segment(10, 19))), 19)
})

test('a killed collector continues after its last acknowledged record, whatever follows in the file', async (t) => {
  const edge = await testEdge(30)
  const { dir, open, stored } = await setUp(t, { north: edge.signer.publicKey })
  await (await open()).take(await edge.segment(0, 9))
  const path = join(dir, 'north', 'ledger.jsonl')
  for (const torn of [text(edge, 14).slice(text(edge, 9).length), 'half a line', '\0\0\0\n']) {
    appendFileSync(path, torn)
    const collector = await open()
    assert.equal(upTo(await collector.take(await edge.question(29))), 9)
  }
  assert.equal(upTo(await (await open()).take(await edge.segment(10, 19))), 19)
  assert.equal(stored(), text(edge, 19))
  // Half of the last journal line: its segment was never acknowledged.
  appendFileSync(`${dir}.jsonl`, '{"seq":3,"ver')
  assert.equal(upTo(await (await open()).take(await edge.segment(20, 29))), 29)
  assert.equal(stored(), text(edge, 29))
})

test('a collector does not start on a stored ledger without acknowledged records', async (t) => {
  const edge = await testEdge(30)
  const { dir, open, stored } = await setUp(t, { north: edge.signer.publicKey })
  await (await open()).take(await edge.segment(0, 9))
  const path = join(dir, 'north', 'ledger.jsonl')
  const whole = stored()
  truncateSync(path, whole.length - 1)
  await assert.rejects(open(), /does not hold record 9, which was acknowledged to edge north/)
  writeFileSync(path, whole.replace(/"seq":9/, '"seq":8'))
  await assert.rejects(open(), /does not hold record 9/)
  writeFileSync(path, whole)
  assert.equal(upTo(await (await open()).take(await edge.segment(10, 12))), 12)
})

test('no segment is acknowledged without a record and a signature', async (t) => {
  const edge = await testEdge(30)
  const broken = { ledger: { append: () => Promise.reject(new Error('the disk is full')) } }
  const { open, counted, seqs } = await setUp(t, { north: edge.signer.publicKey }, broken)
  const collector = await open()
  await assert.rejects(collector.take(await edge.segment(0, 9)), /the disk is full/)
  assert.deepEqual([counted, seqs], [['failed'], { north: -1 }])
  assert.equal(upTo(await (await open()).take(await edge.question(29))), -1)
})

test('a journal of positions with an unknown event is not opened, and remains unlocked', async () => {
  const path = join(tempFolder(), 'edges.jsonl')
  const clock = new TestClock()
  const journal = await openFileJournal({ path, clock, decode: (event) => event })
  await journal.append('north', [{ ledgerId: 'a', until: 4 }])
  await journal.close()
  const reason = /an event of collected segments .* not known to this version/
  for (let n = 0; n < 2; n++) await assert.rejects(EdgePositions.open({ path, clock, log: silentLog }), reason)
})

test('positions are compacted to the last one of each edge, and restored from that', async (t) => {
  const path = join(tempFolder(), 'edges.jsonl')
  const clock = new TestClock()
  const position = (upTo: number) => ({ ledgerId: 'a', upTo, head: 'h', bytes: upTo })
  const journal = await openFileJournal({ path, clock, decode: (event) => event })
  await journal.append(
    'north',
    Array.from({ length: 20_000 }, (_, n) => position(n)),
  )
  await journal.close()
  const first = await EdgePositions.open({ path, clock, log: silentLog })
  await first.keep('south', position(7))
  await first.keep('north', position(20_000))
  assert.deepEqual([first.of('north').upTo, first.of('south').upTo], [20_000, 7])
  await first.close()
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  assert.equal(lines.length, 3, 'two snapshots, and the position after them')
  const second = await EdgePositions.open({ path, clock, log: silentLog })
  t.after(() => second.close())
  assert.deepEqual([second.of('north').upTo, second.of('south').upTo], [20_000, 7])
})

test('a segment record that an edge forged hides nothing: it is stored as it is, and found where the stored ledger is verified', async (t) => {
  const head = (edge: TestEdge) => JSON.parse(edge.lines().at(-1) ?? '').hash
  const tree = { size: 6, subtrees: ['b'.repeat(64), 'c'.repeat(64)] }
  const root = new MerkleTree({ ...tree, subtrees: tree.subtrees.map((one) => Buffer.from(one, 'hex')) }).root()
  const cases = [
    // Consistent by itself: only the records before contradict it.
    { change: { root }, plain: 0, found: /(?:forked|broken) at record 5 .*segment record/ },
    { change: { root: 'a'.repeat(64) }, plain: 3, found: /^broken at record 6 .*the segment record is malformed/ },
    {
      change: { root, head: 'd'.repeat(64) },
      plain: 3,
      found: /^broken at record 6 .*the segment record is malformed/,
    },
    { change: { root, first: 9 }, plain: 3, found: /^broken at record 6 .*the segment record is malformed/ },
    { change: { root, open: ['x'] }, plain: 3, found: /^broken at record 6 .*the segment record is malformed/ },
  ]
  for (const { change, plain, found } of cases) {
    const edge = await testEdge(6)
    const { dir, open, stored } = await setUp(t, { north: edge.signer.publicKey })
    const clock = new TestClock()
    const ledger = await openLedger({ path: edge.path, tenant: '', replica: 'e', clock, ids: systemIds(clock) })
    const claims = { ledgerId: edge.ledgerId, first: 0, last: 5, head: head(edge), open: [] }
    await ledger.append({ kind: 'segment', ...claims, ...tree, ...change })
    await ledger.append({ kind: 'admin', action: 'after' })
    await ledger.close()
    const collector = await open()
    assert.equal(upTo(await collector.take(await edge.segment(0, 7))), 7)
    assert.equal(stored(), text(edge, 7))
    const path = join(dir, 'north', 'ledger.jsonl')
    assert.equal((await verifyLedger(path)).exitCode, plain, JSON.stringify(change))
    const strict = await verifyLedger(path, { strict: true })
    assert.match(strict.message, found, JSON.stringify(change))
    // The next segment of the edge continues after it, and a start of the collector finds what it acknowledged.
    assert.equal(upTo(await (await open()).take(await edge.question(7))), 7)
    assert.deepEqual(
      readdirSync(join(dir, 'north')).filter((name) => name !== 'ledger.jsonl'),
      [],
    )
  }
})
