import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { ephemeralSigner, signerOf } from '@plat/keys'
import { appendCheckpoint, checkpointBody, fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'
import { Chain, followChain } from './chain.ts'
import { ZERO_HASH } from './format.ts'
import { repairLedger, verifyLedger } from './index.ts'
import { lineOf } from './testing/line.ts'

const RECORDS = 200
let folder = ''
/** A valid ledger of `RECORDS` records, including genesis. */
let good: Buffer
let lines: string[] = []

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  await fillLedger(join(folder, 'good.jsonl'), RECORDS - 1)
  good = readFileSync(join(folder, 'good.jsonl'))
  lines = ledgerLines(join(folder, 'good.jsonl'))
})
after(() => rmSync(folder, { recursive: true }))

let files = 0
/** Creates a file with these lines. */
function fileOf(some: readonly string[]): string {
  const path = join(folder, `case-${files++}.jsonl`)
  writeLines(path, some)
  return path
}

const bytesOf = (bytes: Buffer) => ({
  read(target: Uint8Array, position: number): number {
    return bytes.copy(target, 0, position, position + target.length)
  },
})

test('a good ledger is valid, in both modes', async () => {
  const path = fileOf(lines)
  for (const strict of [false, true]) {
    const found = await verifyLedger(path, { strict })
    assert.equal(found.verdict, 'valid')
    assert.equal(found.exitCode, 0)
    assert.equal(found.records, RECORDS)
    assert.equal(found.bytes, good.length)
    assert.equal(found.head?.hash, JSON.parse(lines.at(-1) ?? '').hash)
  }
})

test('the test vector of the ledger line format verifies', () => {
  const rec =
    '{"at":"2026-01-01T00:00:00.000000Z","format":1,"kind":"config","ledgerId":"example","replica":"r1","tenant":""}'
  const { hash, text } = lineOf(ZERO_HASH, rec, 0)
  assert.equal(hash, '7c8281d1e195b13d6dd5835cffc6360d2a8add601bc6f12550b7957039a26955')
  assert.equal(text, `{"hash":"${hash}","prev":"${ZERO_HASH}","rec":${rec},"seq":0,"v":1}\n`)
})

/** Of so many records one is changed, and the last; odd, so that these are intents and outcomes. `npm run long -- -only changed-bytes` changes all. */
const CHANGED_EVERY = Number(process.env.PLAT_TEST_CHANGED_EVERY ?? 5)

test('every changed byte of a ledger is found, and its record is named', async () => {
  let offset = 0
  let head = null
  for (const [seq, line] of lines.entries()) {
    const length = Buffer.byteLength(line) + 1
    // Later lines do not affect the place of the damage; one of them is enough.
    const window = good.subarray(offset, offset + length + Buffer.byteLength(lines[seq + 1] ?? '') + 1)
    const isChanged = seq % CHANGED_EVERY === 0 || seq === RECORDS - 1
    for (let at = 0; isChanged && at < length; at++) {
      const bytes = Buffer.from(window)
      bytes[at] = (bytes[at] ?? 0) ^ (1 + ((seq + at) % 255))
      const found = await followChain({ source: bytesOf(bytes), chain: new Chain(head) })
      const last = seq === RECORDS - 1 && at === length - 1
      if (last) assert.ok(found.tail.length > 0 && !found.tailComplete, 'the LF of the last line')
      else assert.equal(found.damage?.seq, seq, `byte ${at} of record ${seq}`)
    }
    offset += length
    head = { seq, hash: JSON.parse(line).hash }
  }
})

test('a changed byte is located by line, record and byte of the file', async () => {
  const path = fileOf([])
  for (let at = 7; at < good.length; at += Math.ceil(good.length / 100)) {
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(path, bytes)
    const found = await verifyLedger(path)
    const line = good.subarray(0, at).toString('latin1').split('\n').length
    assert.equal(found.exitCode, 3)
    assert.equal(found.place?.line, line)
    assert.equal(found.place?.seq, line - 1)
    assert.equal(found.place?.offset, good.lastIndexOf(0x0a, at - 1) + 1)
  }
})

test('swapped, missing, doubled and rewritten lines are distinguished', async () => {
  const swapped = lines.with(10, lines[11] ?? '').with(11, lines[10] ?? '')
  const [cut, doubled] = [lines.toSpliced(10, 1), lines.toSpliced(10, 0, lines[9] ?? '')]
  const rec = JSON.stringify({ at: '2026-01-01T00:00:00.000000Z', kind: 'admin' })
  const prev = JSON.parse(lines[9] ?? '').hash
  const rewritten = lines.with(10, lineOf(prev, rec, 10).text.trimEnd())
  const second = lines.toSpliced(11, 0, lineOf(prev, rec, 10).text.trimEnd())
  const cases = [
    { lines: swapped, code: 3, seq: 10, what: /found record 11: record 10 is missing or out of place/ },
    { lines: cut, code: 3, seq: 10, what: /found record 11: record 10 is missing/ },
    { lines: doubled, code: 3, seq: 10, what: /record 9 is listed twice/ },
    { lines: rewritten, code: 3, seq: 11, what: /does not follow the record before it/ },
    { lines: second, code: 5, seq: 11, what: /two histories/ },
    { lines: lines.slice(1), code: 3, seq: 0, what: /found record 1: record 0 is missing/ },
  ]
  for (const { lines, code, seq, what } of cases) {
    const found = await verifyLedger(fileOf(lines))
    assert.equal(found.exitCode, code, found.message)
    assert.equal(found.place?.seq, seq)
    assert.match(found.message, what)
  }
})

test('a torn tail is distinguished from damage', async () => {
  const path = fileOf(lines)
  writeFileSync(path, good.subarray(0, good.length - 20))
  const torn = await verifyLedger(path)
  assert.equal(torn.verdict, 'torn')
  assert.equal(torn.exitCode, 4)
  assert.equal(torn.records, RECORDS - 1)
  writeFileSync(path, good.subarray(0, good.length - 1))
  assert.equal((await verifyLedger(path)).exitCode, 0)
  writeFileSync(path, '')
  assert.equal((await verifyLedger(path)).exitCode, 3)
})

const signers = {
  Ed25519: ephemeralSigner(),
  'P-256': signerOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'test'),
}

/** The signer's public key as a JWK file. */
function keyFile(signer: (typeof signers)['Ed25519']): string {
  const path = join(folder, `key-${files++}.json`)
  writeFileSync(path, JSON.stringify(signer.publicJwk))
  return path
}

for (const [name, signer] of Object.entries(signers)) {
  test(`a checkpoint signed with ${name} proves the records it covers`, async () => {
    const path = fileOf(lines)
    await appendCheckpoint(path, signer)
    const key = keyFile(signer)
    for (const strict of [false, true]) {
      const found = await verifyLedger(path, { key, strict })
      assert.equal(found.exitCode, 0, found.message)
      assert.deepEqual(found.checkpoints, { found: 1, signed: 1 })
      assert.equal(found.unproven, 0)
    }
    await fillLedger(path, 4)
    const more = await verifyLedger(path, { key })
    assert.equal(more.exitCode, 4)
    assert.equal(more.verdict, 'unproven')
    assert.equal(more.unproven, 4)
    assert.equal((await verifyLedger(path)).exitCode, 0)
    const other = await verifyLedger(path, { key: keyFile(ephemeralSigner()) })
    assert.equal(other.exitCode, 3)
    assert.equal(other.place?.seq, RECORDS)
    assert.match(other.message, /not signed by the given key/)
  })
}

test('a signed checkpoint over another history means a fork, by head and, when strict, by root', async () => {
  const byHead = fileOf(lines)
  await appendCheckpoint(byHead, signers.Ed25519, { head: 'a'.repeat(64) })
  const found = await verifyLedger(byHead, { key: keyFile(signers.Ed25519) })
  assert.equal(found.exitCode, 5)
  assert.equal(found.place?.seq, RECORDS - 1)
  const byRoot = fileOf(lines)
  await appendCheckpoint(byRoot, signers.Ed25519, { root: 'a'.repeat(64) })
  assert.equal((await verifyLedger(byRoot, { strict: true })).exitCode, 5)
  const byLedger = fileOf(lines)
  await appendCheckpoint(byLedger, signers.Ed25519, { ledgerId: 'another' })
  assert.match((await verifyLedger(byLedger)).message, /of another ledger/)
})

test('a ledger cut below a kept checkpoint is truncated, for each form of the checkpoint', async () => {
  const path = fileOf(lines)
  const rec = await appendCheckpoint(path, signers.Ed25519)
  const line = ledgerLines(path).at(-1) ?? ''
  const key = keyFile(signers.Ed25519)
  for (const text of [line, JSON.stringify(rec), String(rec.jws), String(rec.note)]) {
    const checkpoint = join(folder, `checkpoint-${files++}`)
    writeFileSync(checkpoint, text)
    const whole = await verifyLedger(fileOf(lines), { key, checkpoint })
    assert.equal(whole.exitCode, 0, whole.message)
    const cut = await verifyLedger(fileOf(lines.slice(0, -1)), { key, checkpoint })
    assert.equal(cut.exitCode, 6)
    assert.match(cut.message, /covers 200 records, the ledger has 199/)
    const other = join(folder, `other-${files++}.jsonl`)
    await fillLedger(other, RECORDS + 3)
    assert.equal((await verifyLedger(other, { checkpoint })).exitCode, 5)
  }
})

test('a file with 20,000 kept checkpoints is read', async () => {
  const path = fileOf(lines)
  const rec = await appendCheckpoint(path, signers.Ed25519)
  const checkpoint = join(folder, `checkpoint-${files++}`)
  writeFileSync(checkpoint, `${JSON.stringify(rec)}\n`.repeat(20_000))
  assert.equal((await verifyLedger(path, { checkpoint })).verdict, 'valid')
})

test('a checkpoint must not cover records that follow it', async () => {
  const path = fileOf(lines)
  const body = checkpointBody(path)
  await appendCheckpoint(path, signers.Ed25519, { upTo: body.upTo + 1, size: body.size + 1 })
  const found = await verifyLedger(path)
  assert.equal(found.exitCode, 3)
  assert.match(found.message, /covers 201 records, but only 200 came before it/)
})

test('strict mode finds a correctly hashed line that is not canonical', async () => {
  for (const rec of [
    '{"kind":"admin","at":"x"}',
    '{"at":"x","kind":"admin","kind":"admin"}',
    '{"at":"x","kind":"admin","n":1.0}',
    '{"at":"x","facts":[{"b":1,"a":2}],"kind":"admin"}',
    '{"at":"x","facts":{"9":1,"10":2},"kind":"admin"}',
    '{"at":"x","kind":"admin","tool":"\\ud800"}',
  ]) {
    const prev = JSON.parse(lines.at(-1) ?? '').hash
    const path = fileOf([...lines, lineOf(prev, rec, RECORDS).text.trimEnd()])
    assert.equal((await verifyLedger(path)).exitCode, 0)
    const found = await verifyLedger(path, { strict: true })
    assert.equal(found.exitCode, 3)
    assert.match(found.message, /record 200 .*canonical/)
  }
  for (const rec of [
    '{"at":"x","facts":{"10":2,"9":1},"kind":"admin"}',
    '{"at":"x","kind":"admin","tool":"\\\\ud800"}',
  ]) {
    const prev = JSON.parse(lines.at(-1) ?? '').hash
    const path = fileOf([...lines, lineOf(prev, rec, RECORDS).text.trimEnd()])
    assert.equal((await verifyLedger(path, { strict: true })).exitCode, 0)
  }
})

test('repair keeps the valid records and every other byte, and the chain continues', async () => {
  const path = fileOf(lines)
  const bytes = Buffer.from(good)
  const offset = Buffer.byteLength(
    lines
      .slice(0, 50)
      .map((line) => `${line}\n`)
      .join(''),
  )
  bytes[offset + 200] = (bytes[offset + 200] ?? 0) ^ 1
  writeFileSync(path, bytes)
  const repaired = await repairLedger({ path, clock: systemClock, ids: systemIds(systemClock) })
  assert.equal(repaired.entries, 50)
  assert.equal(repaired.aside?.file, `${path}.damaged-50`)
  assert.deepEqual(readFileSync(`${path}.damaged-50`), bytes.subarray(offset))
  assert.equal((await verifyLedger(path, { strict: true })).exitCode, 0)
  const after = ledgerLines(path)
  assert.deepEqual(after.slice(0, 50), lines.slice(0, 50))
  const recovered = JSON.parse(after[50] ?? '').rec
  assert.equal(recovered.kind, 'recovered')
  assert.equal(recovered.bytes, bytes.length - offset)
})
