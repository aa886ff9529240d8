import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { hmacKeyOf, LedgerSequence, openLedger, segmentPath } from '@plat/ledger'
import { appendAnchor, appendCheckpoint, fillLedger, ledgerLines } from '@plat/testkit/ledger'
import { writeSegments } from '@plat/testkit/segments'
import { until } from '@plat/testkit/until'
import { auditProof, auditVerifyProof } from './proof.ts'
import { auditRepair, auditRestore } from './repair.ts'
import { auditTail } from './tail.ts'
import { auditVerify } from './verify.ts'

let folder = ''
let path = ''
let printed: string[] = []
let complained: string[] = []
const output = { out: (text: string) => void printed.push(text), err: (text: string) => void complained.push(text) }

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
  printed = []
  complained = []
  await fillLedger(path, 10)
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Flips one bit of record 5. */
function damage(): number {
  const bytes = readFileSync(path)
  const offset = Buffer.byteLength(ledgerLines(path).slice(0, 5).join('\n')) + 1
  bytes[offset + 180] = (bytes[offset + 180] ?? 0) ^ 1
  writeFileSync(path, bytes)
  return offset
}

test('verify says what it read and answers 0 for a good ledger', async () => {
  assert.equal(await auditVerify({ path, output: 'table' }, output), 0)
  assert.match(printed[0] ?? '', /^valid: 11 records up to record 10, hash [0-9a-f]{64}$/)
})

test('verify answers 3 for damage, names line, record and byte, and says what to do', async () => {
  const offset = damage()
  assert.equal(await auditVerify({ path, output: 'table' }, output), 3)
  assert.match(printed[0] ?? '', new RegExp(`broken at record 5 \\(.*, line 6, byte ${offset}\\)`))
  assert.match(printed.join('\n'), /plat audit repair/)
  printed = []
  assert.equal(await auditVerify({ path, output: 'json' }, output), 3)
  assert.equal(JSON.parse(printed[0] ?? '').place.seq, 5)
})

test('verify reads every ledger in a folder of tenants, and answers with the worst', async () => {
  const tenants = join(path, '..', 'tenants')
  for (const name of ['blue', 'red']) {
    mkdirSync(join(tenants, name), { recursive: true })
    writeFileSync(join(tenants, name, 'audit.jsonl'), readFileSync(path))
  }
  assert.equal(await auditVerify({ path: tenants, output: 'table' }, output), 0)
  assert.deepEqual(
    printed.filter((line) => line.startsWith('ledger ') && line.endsWith(':')),
    ['ledger blue:', 'ledger red:'],
  )
  damage()
  writeFileSync(join(tenants, 'red', 'audit.jsonl'), readFileSync(path))
  assert.equal(await auditVerify({ path: tenants, output: 'table' }, output), 3)
  rmSync(tenants, { recursive: true })
})

test('verify advises to restore a sealed segment that is damaged, and names one that is missing', async () => {
  const files = { tenant: '', replica: 'r', clock: systemClock, ids: systemIds(systemClock) }
  const ledger = await openLedger({ path, ...files, sealing: { bytes: 1000, seconds: 0 } })
  const segments = async () => {
    await ledger.append({ kind: 'admin' })
    await using sequence = await LedgerSequence.open(path)
    return sequence.segments
  }
  await until(async () => (await segments()).length > 0, 'a sealed segment')
  // Without a record in the active file, a start needs the sealed one.
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  const segment = segmentPath(path, 0)
  const whole = readFileSync(segment)
  writeFileSync(segment, Buffer.from(whole).fill('x', 300, 310))
  assert.equal(await auditVerify({ path, output: 'table' }, output), 3)
  assert.match(printed[0] ?? '', /^broken at record 0 \(.*audit\.jsonl\.0{20}\.jsonl, line 1/)
  assert.match(printed.at(-1) ?? '', /restore this sealed segment from a copy/)
  assert.match(printed.at(-1) ?? '', /plat audit repair <ledger> -from <copy>/)
  printed = []
  writeFileSync(join(folder, 'copy'), whole)
  assert.equal(await auditRestore({ path, from: join(folder, 'copy') }, output), 0)
  assert.match(
    printed.join('\n'),
    /records 0 to \d+ are restored from .*The damaged file is kept, as it was, as .*\.damaged/s,
  )
  assert.equal(await auditVerify({ path, output: 'table' }, output), 0)
  await assert.rejects(auditRestore({ path, from: `${path}.head` }, output), /does not begin with a record of a ledger/)
  printed = []
  rmSync(segment)
  assert.equal(await auditVerify({ path, output: 'table' }, output), 2)
  assert.match(complained[0] ?? '', /0{20}\.jsonl is missing: restore it from a copy with `plat audit repair/)
  assert.equal(await auditRepair({ path }, output), 2)
  assert.match(complained[1] ?? '', /0{20}\.jsonl is missing: restore it from a copy with `plat audit repair/)
})

test('verify says where segments that left are archived, and that the rest is valid', async () => {
  const signer = ephemeralSigner()
  const segmented = await writeSegments(join(folder, 'segmented.jsonl'), { segments: 3, records: 6, signer })
  const key = join(folder, 'key.jwk')
  writeFileSync(key, JSON.stringify(signer.publicJwk))
  segmented.leave(0, { archive: 's3://audit/one' })
  segmented.leave(1, { archive: null, checkpoint: segmented.files[2]?.lines[0] ?? '' })
  assert.equal(await auditVerify({ path: segmented.path, output: 'table' }, output), 0)
  assert.match(printed.join('\n'), /^records 0 to 6 are archived at s3:\/\/audit\/one; /m)
  assert.match(printed.join('\n'), /^records 7 to 13 were deleted; /m)
  printed = []
  await auditVerify({ path: segmented.path, key, output: 'json' }, output)
  const found = JSON.parse(printed.join('\n'))
  assert.deepEqual(found.archived[1], { first: 7, last: 13, archive: null })
  assert.equal(found.unproven, 1)
})

test('verify shows the anchors of a transparency log, and whether its key says so', async () => {
  const [signer, log] = [ephemeralSigner(), ephemeralSigner()]
  const logKey = join(folder, 'log.jwk')
  writeFileSync(logKey, JSON.stringify(log.publicJwk))
  await appendCheckpoint(path, signer)
  await appendAnchor(path, log)
  assert.equal(await auditVerify({ path, output: 'table' }, output), 0)
  assert.match(printed.join('\n'), /anchored in https:\/\/log\.example up to record 10 \(anchors: 1; --log-key checks/)
  printed = []
  assert.equal(await auditVerify({ path, logKey, output: 'table' }, output), 0)
  assert.match(printed.join('\n'), /up to record 10 \(anchors: 1; as its key says\)/)
  printed = []
  assert.equal(await auditVerify({ path, logKey, output: 'json' }, output), 0)
  const last = { upTo: 10, url: 'https://log.example' }
  assert.deepEqual(JSON.parse(printed[0] ?? '').anchors, { found: 1, signed: 1, last })
  writeFileSync(logKey, JSON.stringify(ephemeralSigner().publicJwk))
  assert.equal(await auditVerify({ path, logKey, output: 'table' }, output), 3)
})

test('verify answers 6 for a ledger whose last records were cut off, without being given any file', async () => {
  const lines = ledgerLines(path)
  writeFileSync(path, `${lines.slice(0, -2).join('\n')}\n`)
  assert.equal(await auditVerify({ path, output: 'table' }, output), 6)
  assert.match(printed[0] ?? '', /^truncated: .*\.head covers 11 records, the ledger has 9$/)
  assert.match(printed.join('\n'), /Look for them in backups and sinks/)
})

test('verify answers 2 when a file cannot be read', async () => {
  assert.equal(await auditVerify({ path: join(folder, 'none'), output: 'table' }, output), 2)
  assert.match(complained[0] ?? '', /none cannot be read \(ENOENT\)/)
  assert.equal(await auditVerify({ path, key: path, output: 'table' }, output), 2)
})

test('tail shows the latest records, one line each', async () => {
  assert.equal(await auditTail({ path, lines: '3', output: 'wide' }, output), 0)
  assert.equal(printed.length, 3)
  assert.match(printed[2] ?? '', /^10 .* completed .* default\/assistant +notes\/add_note +- +4 ms$/)
  printed = []
  await auditTail({ path, lines: '2', output: 'json' }, output)
  assert.deepEqual(printed, ledgerLines(path).slice(-2))
})

test('tail follows what is written until it is stopped', async () => {
  const stop = new AbortController()
  const ledger = await openLedger({ path, tenant: '', replica: 'r', clock: systemClock, ids: systemIds(systemClock) })
  const seen: number[] = []
  const out = (text: string): void => {
    seen.push(JSON.parse(text).seq)
    if (seen.length === 1) void ledger.append({ kind: 'admin' })
    else stop.abort()
  }
  await auditTail({ path, lines: '1', follow: true, output: 'json' }, { out, err: () => {} }, { stop: stop.signal })
  await ledger.close()
  assert.deepEqual(seen, [10, 11])
  const printed: string[] = []
  await auditTail({ path, lines: '1', output: 'table' }, { out: (text) => void printed.push(text), err: () => {} })
  assert.doesNotMatch(printed.join(), /undefined/)
})

test('repair keeps the damaged part and leaves a valid ledger; a running writer keeps it out', async () => {
  const offset = damage()
  const end = readFileSync(path).subarray(offset)
  assert.equal(await auditRepair({ path }, output), 0)
  assert.match(printed.join('\n'), /5 good records stay/)
  assert.deepEqual(readFileSync(`${path}.damaged-5`), end)
  assert.equal(await auditVerify({ path, strict: true, output: 'table' }, output), 0)
  const ledger = await openLedger({ path, tenant: '', replica: 'r', clock: systemClock, ids: systemIds(systemClock) })
  await assert.rejects(auditRepair({ path }, output), /in use by another process.*stop the gateway first/)
  await ledger.close()
})

test('verify takes the key of HMAC checkpoints from the environment, and several kept checkpoints', async () => {
  const secret = 'a secret key of this test'
  await appendCheckpoint(path, { signer: null, pq: null, hmacKey: hmacKeyOf(secret) })
  const verified = (env: NodeJS.ProcessEnv) => auditVerify({ path, output: 'table' }, output, { env })
  assert.equal(await verified({ PLAT_AUDIT_HMAC_KEY: secret }), 0)
  assert.match(printed.join(), /all covered by signed checkpoints/)
  assert.equal(await verified({ PLAT_AUDIT_HMAC_KEY: 'another' }), 3)
  await fillLedger(path, 2)
  assert.equal(await verified({ PLAT_AUDIT_HMAC_KEY: secret }), 4)
})

test('proof prints what verify-proof proves, with the public key alone', async () => {
  const signer = ephemeralSigner()
  await appendCheckpoint(path, signer)
  await fillLedger(path, 2)
  const [key, other, receipt] = ['key', 'other', 'receipt'].map((name) => join(folder, name))
  assert.ok(key !== undefined && other !== undefined && receipt !== undefined)
  writeFileSync(key, JSON.stringify(signer.publicJwk))
  writeFileSync(other, JSON.stringify(ephemeralSigner().publicJwk))
  assert.equal(await auditProof({ path, seq: '7', output: 'table' }, output), 0)
  writeFileSync(receipt, printed.join('\n'))
  const judged = (options: { key?: string }, env = {}) => {
    printed = []
    return auditVerifyProof({ file: receipt, output: 'table', ...options }, output, env)
  }
  assert.equal(await judged({ key }), 0)
  assert.match(
    printed.join(),
    /^valid: record 7, hash [0-9a-f]{64}, is in ledger [0-9a-f-]{36}, signed with its first 11 records$/,
  )
  assert.equal(await judged({ key: other }), 3)
  assert.equal(await judged({}, { PLAT_AUDIT_HMAC_KEY: 'any' }), 4)
  assert.equal(await judged({}), 2)
  assert.match(complained.join(), /name the public key of the checkpoints with -key/)
  writeFileSync(receipt, readFileSync(receipt, 'utf8').replace('alice', 'mallo'))
  assert.equal(await judged({ key }), 3)
  assert.equal(await judged({ key: receipt }), 2)
  for (const [seq, exitCode] of [
    ['12', 4],
    ['99', 2],
    ['x', 2],
  ] as const) {
    await assert.rejects(auditProof({ path, seq, output: 'json' }, output), { exitCode })
  }
})
