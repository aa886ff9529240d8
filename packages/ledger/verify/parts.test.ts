import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { appendAnchor } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { lineOf, type SegmentedLedger, timeOfRecord, writeSegments } from '@plat/testkit/segments'
import {
  checkpointsPath,
  type Finding,
  segmentsPath,
  type VerifyOptions,
  VerifyUsageError,
  verifyLedger,
} from '../index.ts'
import type { ReadAt } from '../lines.ts'
import { PartVerifier, TooManyClaimsError } from './part.ts'
import { PartsVerifier } from './parts.ts'
import { planParts } from './plan.ts'
import { LocalRunner } from './runner.ts'

const signer = ephemeralSigner()
const folder = tempFolder()
const key = join(folder, 'key.jwk')
writeFileSync(key, JSON.stringify(signer.publicJwk))

let count = 0
function pathOf(): string {
  return join(tempFolder(), `ledger-${count++}.jsonl`)
}

/** Three sealed segments and the active file, of 12 records each, with checkpoints across the seams. */
async function ledger(more: { segments?: number; signed?: boolean } = {}): Promise<SegmentedLedger> {
  const { segments = 3, signed = true } = more
  return await writeSegments(pathOf(), { segments, records: 12, ...(signed && { signer }) })
}

/** Members of a finding that are the same for any division of the lines into files. */
function comparable({ message, place, archived: _, ...found }: Finding) {
  return {
    ...found,
    message: message.replace(/ \(\S+, line \d+, byte \d+\)/, ''),
    place: place && { seq: place.seq, what: place.what },
  }
}

/** Verifies segments, and the same lines as one file: both must agree. With `threads` also on two other threads. */
async function verified({ path, files }: SegmentedLedger, options: VerifyOptions = {}): Promise<Finding> {
  const joined = pathOf()
  writeFileSync(joined, files.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join(''))
  const { threads, ...rest } = options
  const [one, own] = [await verifyLedger(joined, rest), await verifyLedger(path, { ...rest, threads: 0 })]
  assert.deepEqual(comparable(own), comparable(one))
  if (threads !== undefined) assert.deepEqual(await verifyLedger(path, options), own)
  return own
}

/** Replaces a line by another one with a valid hash. */
function rewrite({ files }: SegmentedLedger, file: number, line: number, tool: string): void {
  const { lines = [], first = 0 } = files[file] ?? {}
  const { prev, rec } = JSON.parse(lines[line] ?? '')
  lines[line] = lineOf(prev, { ...rec, tool }, first + line).text
}

test('segments are verified as one ledger, with checkpoints across their seams', async () => {
  for (const strict of [false, true]) {
    const found = await verified(await ledger(), { key, strict, threads: 2 })
    assert.equal(found.exitCode, 4, 'the last record is after the last checkpoint')
    assert.deepEqual([found.records, found.unproven, found.checkpoints], [52, 1, { found: 4, signed: 4 }])
    assert.match(found.message, /^valid up to record 51/)
  }
  assert.equal((await verified(await ledger({ signed: false }))).verdict, 'valid')
})

test('a change of any file is found and located by file, line and record', async () => {
  for (const [index, line] of [
    [0, 3],
    [1, 0],
    [2, 12],
    [3, 5],
  ] as const) {
    const changed = await ledger()
    const { lines = [], first = 0, path } = changed.files[index] ?? {}
    lines[line] = (lines[line] ?? '').replace('"tenant":""', '"tenant":"x"')
    changed.write()
    const found = await verified(changed, { key })
    assert.deepEqual(
      [found.exitCode, found.place?.seq, found.place?.line, found.place?.path],
      [3, first + line, line + 1, path],
    )
    assert.match(found.message, /the hash does not match/)
  }
})

test('of several problems the first is reported, wherever the threads were', async () => {
  const changed = await ledger()
  for (const [index, line] of [
    [1, 4],
    [2, 2],
    [3, 1],
  ] as const) {
    const { lines = [] } = changed.files[index] ?? {}
    lines[line] = (lines[line] ?? '').replace('"tenant":""', '"tenant":"x"')
  }
  changed.write()
  assert.equal((await verified(changed, { key, strict: true, threads: 2 })).place?.seq, 17)
})

test('missing, doubled and second lines at a seam are found', async () => {
  const cases: readonly [(ledger: SegmentedLedger) => unknown, number, RegExp][] = [
    [({ files }) => files[0]?.lines.pop(), 3, /found record 13: record 12 is missing/],
    [({ files }) => files[1]?.lines.shift(), 3, /found record 14: record 13 is missing/],
    [({ files }) => files[1]?.lines.unshift(files[0]?.lines.at(-1) ?? ''), 3, /record 12 is listed twice/],
    [
      ({ files }) => files[1]?.lines.unshift(otherEnd(files[0]?.lines.at(-1) ?? '')),
      5,
      /a second record 12 follows record 11: two histories/,
    ],
    [({ files }) => files[1]?.lines.splice(0), 3, /found record 26: records 13 to 25 are missing/],
  ]
  for (const [change, code, message] of cases) {
    const changed = await ledger({ signed: false })
    change(changed)
    changed.write()
    const found = await verified(changed)
    assert.equal(found.exitCode, code, found.message)
    assert.match(found.message, message)
  }
})

function otherEnd(line: string): string {
  const { prev, rec, seq } = JSON.parse(line)
  return lineOf(prev, { ...rec, replica: 'other' }, seq).text
}

test('a segment that was rewritten with valid hashes does not fit to the next one, and contradicts its checkpoints', async () => {
  const changed = await ledger()
  rewrite(changed, 1, 11, 'other')
  rewriteEnd(changed, 1)
  const found = await verified(changed)
  assert.equal(found.exitCode, 5, found.message)
  assert.match(found.message, /^forked at record 25 .*: the checkpoint in record 26 covers another history/)
  const unsigned = await ledger({ signed: false })
  rewrite(unsigned, 1, 11, 'other')
  rewriteEnd(unsigned, 1)
  assert.match((await verified(unsigned)).message, /^broken at record 26 .*: it does not follow the record before it/)
})

/** Gives the last record of a segment the hash of the one before it. */
function rewriteEnd(ledger: SegmentedLedger, index: number): void {
  const { lines = [] } = ledger.files[index] ?? {}
  const { rec, seq } = JSON.parse(lines.at(-1) ?? '')
  const { hash } = JSON.parse(lines.at(-2) ?? '')
  lines[lines.length - 1] = lineOf(hash, { ...rec, head: hash }, seq).text
  ledger.write()
}

test('a segment record that states another root is found when the tree is built', async () => {
  const changed = await ledger({ signed: false, segments: 1 })
  const { lines = [] } = changed.files[0] ?? {}
  const { prev, rec, seq } = JSON.parse(lines.at(-1) ?? '')
  const [one = '', two = ''] = rec.subtrees
  assert.ok(one !== two)
  const other = await writeSegments(pathOf(), { segments: 1, records: 12, record: () => ({ tool: 'other' }) })
  const wrong = JSON.parse(other.records[0] ?? '').rec
  lines[lines.length - 1] = lineOf(prev, { ...rec, subtrees: wrong.subtrees, root: wrong.root }, seq).text
  changed.files[1]?.lines.splice(0)
  changed.write()
  assert.equal((await verified(changed)).exitCode, 0)
  assert.match(
    (await verified(changed, { strict: true })).message,
    /^forked at record 11 .*: the segment record 12 covers another history/,
  )
})

test('a torn tail is one at the end alone', async () => {
  const changed = await ledger({ signed: false })
  const { lines = [] } = changed.files.at(-1) ?? {}
  writeFileSync(changed.path, `${lines.join('\n')}\n{"hash":"ab`)
  const found = await verifyLedger(changed.path)
  assert.deepEqual([found.verdict, found.place?.line, found.records], ['torn', 13, 51])
})

test('a ledger that ends below its checkpoints is truncated, with all files after a record removed', async () => {
  const cut = await ledger()
  const stored = join(tempFolder(), 'kept')
  writeFileSync(stored, cut.files.at(-1)?.lines.at(-2) ?? '')
  cut.files.at(-1)?.lines.splice(0)
  cut.write()
  const found = await verified(cut, { key, checkpoint: stored })
  assert.deepEqual([found.exitCode, found.records], [6, 39])
})

test('checkpoints of a part are compared in batches, and each finds its contradiction', async () => {
  const { files } = await ledger({ segments: 0 })
  const lines = files[0]?.lines ?? []
  const { prev, rec } = JSON.parse(lines[11] ?? '')
  const lies = [4, 3].map((size) => ({
    ...rec,
    upTo: size - 1,
    size,
    jws: undefined,
    note: undefined,
    hmac: hmacOf(size),
  }))
  const text = [...lines.slice(0, 11)]
  let head = prev
  for (const [at, lie] of lies.entries()) {
    const line = lineOf(head, { ...lie, head: 'a'.repeat(64), root: 'b'.repeat(64) }, 11 + at)
    text.push(line.text)
    head = line.hash
  }
  const bytes = Buffer.from(text.map((line) => `${line}\n`).join(''))
  const source: ReadAt = { read: (target, position) => bytes.copy(target, 0, position, position + target.length) }
  const start = { head: null, previous: null, tree: null, ledgerId: null }
  const options = { source, first: 0, start, keys: { trust: null, logKeys: null }, strict: false }
  for (const maxClaims of [1, 100]) {
    const verifier = new PartVerifier({ ...options, maxClaims })
    assert.equal((await verifier.collect()).checkpoints, 2)
    assert.equal((await verifier.verify([])).problem?.seq, 2)
  }
})

/** The statement of a checkpoint; nothing verifies it without a key. */
function hmacOf(size: number): string {
  const parts = [
    { alg: 'HS256', typ: 'plat-checkpoint+jws' },
    { head: 'a'.repeat(64), ledgerId: 'x', root: 'b'.repeat(64), size, upTo: size - 1 },
  ]
  return `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.AAAA`
}

test('claims about earlier files are limited', async () => {
  const { files } = await ledger()
  const line = files[1]?.lines[0] ?? ''
  const bytes = Buffer.from(`${line}\n`.repeat(4))
  const source: ReadAt = { read: (target, position) => bytes.copy(target, 0, position, position + target.length) }
  const start = { head: null, previous: null, tree: null, ledgerId: null }
  const options = { source, first: 13, start, keys: { trust: null, logKeys: null }, strict: false }
  assert.equal((await new PartVerifier({ ...options, maxEarlier: 4 }).collect()).earlier.length, 4)
  await assert.rejects(new PartVerifier({ ...options, maxEarlier: 3 }).collect(), TooManyClaimsError)
})

test('segments that left are said to be archived where, and the chain continues after them', async () => {
  for (const threads of [0, 2]) {
    const some = await ledger()
    const checkpoint = some.files[2]?.lines[0] ?? ''
    some.leave(0, { archive: 's3://audit/ledger', checkpoint: some.files[1]?.lines[0] ?? '' })
    some.leave(1, { archive: 's3://audit/ledger', checkpoint })
    for (const strict of threads === 0 ? [false, true] : [true]) {
      const found = await verifyLedger(some.path, { key, strict, threads })
      assert.deepEqual([found.exitCode, found.records, found.unproven], [4, 52, 1], found.message)
      assert.deepEqual(found.archived, [{ first: 0, last: 25, archive: 's3://audit/ledger' }])
    }
  }
})

test('a segment that leaves while the ledger is verified is one that left', async () => {
  const some = await ledger()
  const job = { ledgerPath: some.path, strict: false, key: null, logKey: null, hmacKey: null }
  const parts = await planParts(some.path, false)
  await using runner = new LocalRunner(job, () => {})
  const [first, second] = parts
  assert.ok(first !== undefined && second !== undefined)
  assert.notEqual(await runner.collect(first.first, first.start), null)
  some.leave(1, { archive: 's3://audit/one' })
  assert.equal(await runner.collect(second.first, second.start), null)
  const verifier = new PartsVerifier({ job, parts, threads: 0, onProgress: () => {} })
  const verified = await verifier.run()
  assert.deepEqual(
    verified.map(({ archived, result }) => [archived[0]?.archive, result.problem]),
    [undefined, 's3://audit/one', undefined, undefined].map((archive) => [archive, null]),
  )
})

test('a list that states something else about a segment that left is found', async () => {
  const left = async (entry: { checkpoint?: string; record?: string }, index = 1) => {
    const some = await ledger()
    some.leave(index, { archive: null, ...entry })
    return await verifyLedger(some.path, { key })
  }
  const { files, records } = await ledger()
  const other = JSON.parse(records[1] ?? '')
  const record = lineOf(other.prev, { ...other.rec, at: timeOfRecord(9999) }, other.seq).text
  assert.match(
    (await left({ record })).message,
    /^forked at record 25 .*: the checkpoint in record 26 covers another history/,
  )
  const forged = (files[2]?.lines[0] ?? '').replace(/"jws":"[^"]+\./, '$&AAAA')
  assert.match((await left({ checkpoint: forged })).message, /^broken at record 13 .*not signed by the given key/)
  assert.match((await left({ checkpoint: files[1]?.lines[0] ?? '' })).message, /covers only 13 records/)
  const lie = await writeSegments(pathOf(), { segments: 3, records: 12, signer, record: () => ({ tool: 'other' }) })
  assert.match(
    (await left({ checkpoint: lie.files[2]?.lines[0] ?? '' })).message,
    /^forked at record 25 .*checkpoint of the archived records/,
  )
})

test('a list without a valid record of a segment is named, and a missing file as well', async () => {
  const some = await ledger()
  some.leave(1, { archive: null, record: 'x' })
  await assert.rejects(
    verifyLedger(some.path),
    (error) => error instanceof VerifyUsageError && error.message.includes(segmentsPath(some.path)),
  )
  const missing = await ledger()
  const file = missing.files[1]?.path ?? ''
  rmSync(file)
  for (const threads of [0, 1])
    await assert.rejects(
      verifyLedger(missing.path, { threads }),
      new RegExp(`${basename(file)} is missing: restore it from a copy`),
    )
})

test('a list with another record of a segment that is there changes no finding', async () => {
  const some = await ledger()
  const other = await writeSegments(pathOf(), { segments: 3, records: 12, record: () => ({ tool: 'other' }) })
  some.leave(1, { archive: null, record: other.records[1] ?? '' })
  // The file comes back, and the list still has the other record.
  const { path, lines } = some.files[1] ?? { path: '', lines: [] }
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
  const text = JSON.parse(readFileSync(segmentsPath(some.path), 'utf8'))
  text.segments[1].file = basename(path)
  writeFileSync(segmentsPath(some.path), JSON.stringify(text))
  for (const strict of [false, true]) {
    const found = await verifyLedger(some.path, { key, strict })
    assert.deepEqual([found.verdict, found.records], ['unproven', 52], found.message)
  }
})

test('anchors of all files are counted, and the last one is named', async () => {
  const log = ephemeralSigner()
  const path = pathOf()
  const some = await writeSegments(path, { segments: 2, records: 6, signer })
  some.files.at(-1)?.lines.pop()
  some.write()
  await appendAnchor(path, log)
  const found = await verifyLedger(path, { key })
  assert.deepEqual([found.anchors.found, found.anchors.last?.url], [1, 'https://log.example'])
  assert.equal(checkpointsPath(path), `${path}.checkpoints`)
})
