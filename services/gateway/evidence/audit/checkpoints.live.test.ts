import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { buildInfo, systemIds, TestClock } from '@plat/core'
import { lastCheckpoint, type Rec, verifyLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { wholeLines, writeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createGatewayMetrics } from '../../metrics.ts'
import { type Audit, type AuditOptions, createAudit } from './index.ts'
import { keyFiles } from './testing/keys.ts'

const HMAC_KEY = 'a secret key of the test, 32 bytes or more'

/** A ledger with checkpoints, on a clock that the test advances. */
async function setUp(t: TestContext, own: Partial<AuditOptions['config']>, env: NodeJS.ProcessEnv = {}) {
  const dir = tempFolder()
  const path = join(dir, 'audit.jsonl')
  const clock = new TestClock()
  const config = {
    auditPath: path,
    auditCheckpointKey: '',
    auditCheckpointPQKey: '',
    auditCheckpointPublicKeyFiles: [],
    auditCheckpointIntervalSeconds: 60,
    auditCheckpointEvery: 1000,
    auditSegmentBytes: 65_536,
    auditSegmentSeconds: 0,
    auditVerifyBytesPerSecond: 1_048_576,
    ...own,
  }
  const metrics = createGatewayMetrics(buildInfo('gateway'), config)
  const open = async (more: Partial<AuditOptions['config']> = {}) => {
    const shared = { clock, ids: systemIds(clock), log: silentLog, metrics, since: null, onRecord() {} }
    const audit = await createAudit({ ...shared, env, config: { ...config, ...more } })
    t.after(() => audit.close())
    return audit
  }
  const checkpoints = (): Rec[] =>
    wholeLines(path).flatMap((line) => (line.includes('"kind":"checkpoint"') ? [JSON.parse(line).rec] : []))
  const signedUpTo = () => Number(/^plat_gateway_audit_signed_checkpoint_seq (\S+)$/m.exec(metrics.expose())?.[1])
  return { dir, path, clock, metrics, open, checkpoints, signedUpTo }
}

async function record(audit: Audit, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await audit.ledgers.of('').append({ kind: 'alert' })
}

test('a checkpoint is signed after its interval, and not again without new records', async (t) => {
  // Shows D3.audit.keyURI.file.
  // Shows D3.audit.auditCheckpointKey, D3.audit.auditCheckpointIntervalSeconds,
  // D3.metric.plat_gateway_audit_signed_checkpoint_seq and D3.event.checkpointsSigned.
  const { uri, pub } = await keyFiles()
  const { path, clock, open, checkpoints, signedUpTo } = await setUp(t, { auditCheckpointKey: uri })
  const audit = await open()
  await record(audit, 5)
  await clock.advance(59_999)
  assert.deepEqual(checkpoints(), [])
  await clock.advance(1)
  await until(async () => (await lastCheckpoint(path)) !== null, 'the checkpoint beside the ledger')
  const [first] = checkpoints()
  assert.deepEqual([first?.upTo, first?.size, signedUpTo()], [5, 6, 5])
  for (let minute = 0; minute < 3; minute++) await clock.advance(60_000)
  await record(audit, 1)
  // An interval that ends while a checkpoint is still being stored makes none.
  await until(
    () => checkpoints().length === 2,
    'the second one',
    () => clock.advance(60_000),
  )
  assert.equal(checkpoints()[1]?.upTo, 7)
  await audit.close()
  const found = await verifyLedger(path, { key: pub, strict: true })
  assert.deepEqual([found.exitCode, found.unproven], [0, 0], found.message)
})

test('by default a checkpoint comes every 60 s or 1,000 records, whichever comes first', async (t) => {
  // Shows D3.audit.auditCheckpointEvery and D3.limit.checkpoints.
  const { uri } = await keyFiles()
  const { open, checkpoints } = await setUp(t, { auditCheckpointKey: uri })
  const audit = await open()
  await record(audit, 998)
  assert.deepEqual(checkpoints(), [])
  await record(audit, 1)
  await until(() => checkpoints().length === 1, 'the checkpoint of the thousandth record')
  assert.equal(checkpoints()[0]?.upTo, 999)
})

test('a last checkpoint is made at shutdown, and a restart continues after it', async (t) => {
  const { uri, pub } = await keyFiles()
  const { path, clock, open, checkpoints } = await setUp(t, { auditCheckpointKey: uri })
  for (const run of [1, 2, 3]) {
    const audit = await open()
    await record(audit, 20)
    if (run === 2) {
      await clock.advance(60_000)
      await until(() => checkpoints().length === 2, 'the checkpoint in between')
    }
    await audit.close()
    const found = await verifyLedger(path, { key: pub, strict: true })
    assert.deepEqual([found.exitCode, found.checkpoints.signed], [0, run], found.message)
  }
  // Without new records there is nothing to sign.
  await (await open()).close()
  assert.equal(checkpoints().length, 3)
})

test('HMAC checkpoints come by records and not by time, and verify with the same key', async (t) => {
  // Shows D3.load.secret.auditHmacKey.
  const env = { PLAT_AUDIT_HMAC_KEY: HMAC_KEY }
  const { path, clock, open, checkpoints, metrics } = await setUp(t, { auditCheckpointEvery: 10 }, env)
  const audit = await open()
  await record(audit, 5)
  await clock.advance(600_000)
  await record(audit, 5)
  await until(() => checkpoints().length === 1, 'the checkpoint of ten records')
  assert.deepEqual(
    Object.keys(checkpoints()[0] ?? {}).filter((name) => /jws|note|pq|hmac/.test(name)),
    ['hmac'],
  )
  assert.doesNotMatch(metrics.expose(), /signed_checkpoint/)
  await audit.close()
  const hmacKey = createSecretKey(Buffer.from(HMAC_KEY))
  assert.equal((await verifyLedger(path, { hmacKey })).exitCode, 0)
  assert.equal((await verifyLedger(path, { hmacKey: createSecretKey(Buffer.from('another')) })).exitCode, 3)
})

test('an HMAC key can come from a file; with two sources the gateway does not start', async (t) => {
  const file = join(tempFolder(), 'hmac')
  await writeFile(file, `${HMAC_KEY}\n`)
  const { path, open } = await setUp(t, {}, { PLAT_AUDIT_HMAC_KEY_FILE: file })
  await (await open()).close()
  assert.equal((await verifyLedger(path, { hmacKey: createSecretKey(Buffer.from(HMAC_KEY)) })).exitCode, 0)
  const twice = await setUp(t, {}, { PLAT_AUDIT_HMAC_KEY_FILE: file, PLAT_AUDIT_HMAC_KEY: HMAC_KEY })
  await assert.rejects(twice.open(), /PLAT_AUDIT_HMAC_KEY/)
})

test('a new key on disk signs the next checkpoint; the ledger verifies with both keys, and with neither alone', async (t) => {
  const old = await keyFiles()
  const { dir, path, clock, open, checkpoints } = await setUp(t, { auditCheckpointKey: old.uri })
  const audit = await open()
  await record(audit, 3)
  await clock.advance(60_000)
  await until(() => checkpoints().length === 1, 'the first checkpoint')
  const next = await keyFiles('ES256')
  await rename(next.path, old.path)
  await record(audit, 3)
  await audit.close()
  assert.equal(checkpoints().length, 2)
  assert.equal((await verifyLedger(path, { key: old.pub })).exitCode, 3)
  assert.equal((await verifyLedger(path, { key: next.pub })).exitCode, 3)
  const both = join(dir, 'both.json')
  const keys = [old, next].map(({ signer }) => signer.publicJwk)
  await writeFile(both, JSON.stringify({ keys }))
  assert.equal((await verifyLedger(path, { key: both, strict: true })).exitCode, 0)
})

test('while the key file is missing or damaged the last key continues to sign', async (t) => {
  const { uri, path: file, pub } = await keyFiles()
  const { path, open } = await setUp(t, { auditCheckpointKey: uri })
  const audit = await open()
  await writeFile(file, 'no key')
  await record(audit, 3)
  await audit.close()
  assert.equal((await verifyLedger(path, { key: pub })).exitCode, 0)
})

test('RSA and hybrid checkpoints are made and verify', async (t) => {
  const [rsa, pq] = [await keyFiles('RS256'), await keyFiles('ML-DSA-65')]
  const keys = { auditCheckpointKey: rsa.uri, auditCheckpointPQKey: pq.uri }
  const { dir, path, open } = await setUp(t, keys)
  await (await open()).close()
  const both = join(dir, 'both.json')
  await writeFile(both, JSON.stringify({ keys: [rsa, pq].map(({ signer }) => signer.publicJwk) }))
  assert.equal((await verifyLedger(path, { key: both })).exitCode, 0)
})

test('with unusable keys the gateway does not start; one line names the configuration key', async (t) => {
  const [ed, pq] = [await keyFiles(), await keyFiles('ML-DSA-44')]
  const cases: readonly (readonly [Partial<AuditOptions['config']>, RegExp])[] = [
    [{ auditCheckpointKey: '/gone/key.pem' }, /^auditCheckpointKey: .*cannot be read \(ENOENT\)$/],
    [{ auditCheckpointKey: pq.uri }, /^auditCheckpointKey: holds an ML-DSA-44 key; use Ed25519, P-256 or RSA$/],
    [
      { auditCheckpointKey: ed.uri, auditCheckpointPQKey: ed.uri },
      /^auditCheckpointPQKey: holds an EdDSA key; use ML-DSA$/,
    ],
    [{ auditCheckpointPublicKeyFiles: [ed.pub, '/gone'] }, /^auditCheckpointPublicKeyFiles\[1\]: /],
  ]
  for (const [own, message] of cases) {
    const { open } = await setUp(t, own)
    await assert.rejects(open(), { message })
  }
})

test('a gateway does not start on an older copy of its ledger', async (t) => {
  const { uri } = await keyFiles()
  const { path, open } = await setUp(t, { auditCheckpointKey: uri })
  const audit = await open()
  await record(audit, 30)
  await audit.close()
  const lines = wholeLines(path)
  writeLines(path, lines.slice(0, 20))
  await assert.rejects(open(), /has no record 31, which was a checkpoint: it was replaced by an older or another file/)
  writeLines(path, lines)
  await (await open()).close()
})

test('a file modified by another process is not signed', async (t) => {
  const { uri, pub } = await keyFiles()
  const { path, clock, open, checkpoints } = await setUp(t, { auditCheckpointKey: uri })
  const audit = await open()
  await record(audit, 10)
  const lines = wholeLines(path)
  writeLines(path, lines.toSpliced(4, 1))
  await clock.advance(60_000)
  await audit.close()
  assert.deepEqual(checkpoints(), [])
  assert.equal((await verifyLedger(path, { key: pub })).exitCode, 3)
})
