import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { buildInfo, canonicalJson, systemIds, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { checkpointsPath, EXIT_CODES, verifyLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { wholeLines } from '@plat/testkit/ledger'
import { listening, tempFolder } from '@plat/testkit/local'
import { startLog, type TestLog } from '@plat/testkit/transparency-log'
import { until } from '@plat/testkit/until'
import { createGatewayMetrics } from '../../metrics.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { createAudit } from '../audit/index.ts'
import { keyFiles, type TestKey } from '../audit/testing/keys.ts'
import { createTransparency } from './index.ts'

/** A gateway that anchors checkpoints in `log` on demand. */
async function setUp(t: TestContext, key: TestKey, own: object) {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { gateway } = await started(t, { auditPath, auditCheckpointKey: key.uri, transparencyLog: own })
  const headers = { authorization: `Bearer ${TOKEN}` }
  const anchor = async () => {
    const response = await fetch(`${gateway.adminUrl}/v1/audit/anchors`, { method: 'POST', headers })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const act = () =>
    fetch(`${gateway.adminUrl}/v1/revocations`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ target: { agent: 'shop/a' } }),
    })
  const series = async (name: string) =>
    new RegExp(`^${name} (\\S+)$`, 'm').exec(
      await (await fetch(`${gateway.adminUrl}/metrics`, { headers })).text(),
    )?.[1]
  return { auditPath, anchor, act, series }
}

const records = (path: string, kind: string) =>
  wholeLines(path).flatMap((line) => (line.includes(`"kind":"${kind}"`) ? [JSON.parse(line)] : []))

for (const [algorithm, api, kind] of [
  ['ES256', 'v1', 'hashedrekord'],
  ['RS256', 'v1', 'hashedrekord'],
  ['EdDSA', 'v1', 'rekord'],
  ['ES256', 'v2', 'hashedrekord'],
  ['RS256', 'v2', 'hashedrekord'],
] as const) {
  test(`a checkpoint of an ${algorithm} key is anchored on demand over api ${api}, and verifies with both public keys`, async (t) => {
    // Shows D3.transparencyLog.api.v1, D3.transparencyLog.api.v2.
    // Shows D3.audit.transparencyLog, D3.transparencyLog.enabled, D3.transparencyLog.url, D3.transparencyLog.api and
    // D3.transparencyLog.publicKeyFiles.
    const log = await startLog(t)
    const key = await keyFiles(algorithm)
    const own = { enabled: true, url: `${log.url}/`, api, publicKeyFiles: [log.keyFile] }
    const { auditPath, anchor, act, series } = await setUp(t, key, own)
    await act()
    const { status, body } = await anchor()
    assert.equal(status, 200, JSON.stringify(body))
    const [record] = records(auditPath, 'anchor')
    assert.deepEqual(body, { seq: record.seq, checkpoint: record.rec.checkpoint, upTo: record.rec.size - 1, index: 3 })
    assert.equal(JSON.parse(log.entries[3] ?? '').kind, kind)
    // Shows D3.metric.plat_gateway_audit_anchor_seq, D3.metric.plat_gateway_audit_anchors_total and
    // D3.metric.plat_gateway_audit_anchor_last_success_timestamp_seconds.
    assert.equal(await series('plat_gateway_audit_anchor_seq'), String(body.upTo))
    assert.equal(await series('plat_gateway_audit_anchors_total'), '1')
    assert.ok(Number(await series('plat_gateway_audit_anchor_last_success_timestamp_seconds')) > 1_700_000_000)
    const found = await verifyLedger(auditPath, { key: key.pub, logKey: log.keyFile, strict: true })
    assert.deepEqual(found.anchors, { found: 1, signed: 1, last: { upTo: body.upTo, url: `${log.url}/` } })
    assert.equal(found.place, null, found.message)
    const other = await verifyLedger(auditPath, { key: key.pub, logKey: (await keyFiles('ES256')).pub })
    assert.equal(other.verdict, 'broken')
    assert.match(other.message, /the log's checkpoint is not signed by a given key of the log/)
    // A checkpoint is anchored only once.
    assert.equal((await anchor()).status, 409)
    await act()
    assert.equal((await anchor()).status, 200)
    assert.equal(log.entries.length, 5)
  })
}

test('an invalid proof is not recorded, and the failure is returned and counted', async (t) => {
  const log = await startLog(t)
  const own = { enabled: true, url: log.url, publicKeyFiles: [log.keyFile] }
  const { auditPath, anchor, act, series } = await setUp(t, await keyFiles('ES256'), own)
  const faults: readonly (readonly [TestLog['mangle'], RegExp])[] = [
    [() => null, /the log responded 503/],
    [() => ({}), /no inclusion proof/],
    [inside((proof) => ({ ...proof, logIndex: 0 })), /is not included under the root/],
    [inside((proof) => ({ ...proof, hashes: [] })), /is not included under the root/],
    [
      inside((proof) => ({ ...proof, checkpoint: String(proof.checkpoint).replace(/\n\d+\n/, '\n9\n') })),
      /root|signed/,
    ],
    [inside((proof) => ({ ...proof, checkpoint: signedByNobody(String(proof.checkpoint)) })), /not signed/],
    [changed({ integratedTime: 5 }), /promise is not signed/],
    [changed({ body: Buffer.from('{"spec":{}}').toString('base64') }), /of no kind that is known/],
  ]
  for (const [index, [mangle, reason]] of faults.entries()) {
    log.mangle = mangle
    await act()
    const { status, body } = await anchor()
    assert.equal(status, 502, JSON.stringify(body))
    assert.match(body.message, reason)
    // Shows D3.metric.plat_gateway_audit_anchor_errors_total.
    assert.equal(await series('plat_gateway_audit_anchor_errors_total'), String(index + 1))
  }
  assert.deepEqual(records(auditPath, 'anchor'), [])
})

const changed =
  (members: object): TestLog['mangle'] =>
  (answer) =>
    Object.fromEntries(Object.entries(answer).map(([id, entry]) => [id, { ...Object(entry), ...members }]))

function inside(change: (proof: Record<string, unknown>) => object): TestLog['mangle'] {
  return (answer) =>
    Object.fromEntries(
      Object.entries(answer).map(([id, entry]) => {
        const { verification } = Object(entry)
        const inclusionProof = change(verification.inclusionProof)
        return [id, { ...Object(entry), verification: { ...verification, inclusionProof } }]
      }),
    )
}

function signedByNobody(note: string): string {
  const at = note.lastIndexOf(' ') + 1
  const bytes = Buffer.from(note.slice(at, -1), 'base64')
  bytes[20] = (bytes[20] ?? 0) ^ 1
  return `${note.slice(0, at)}${bytes.toString('base64')}\n`
}

test('an existing entry of the log, from before a crash, is fetched', async (t) => {
  const log = await startLog(t)
  const own = { enabled: true, url: log.url, publicKeyFiles: [log.keyFile] }
  const { auditPath, anchor, act } = await setUp(t, await keyFiles(), own)
  await act()
  log.mangle = () => null
  assert.equal((await anchor()).status, 502)
  assert.equal(log.entries.length, 4)
  assert.equal((await anchor()).status, 200)
  assert.equal(log.entries.length, 4)
  assert.equal(records(auditPath, 'anchor').length, 1)
})

test('an anchor of a rewritten or different ledger is detected', async (t) => {
  const log = await startLog(t)
  const key = await keyFiles('ES256')
  const { auditPath, anchor, act } = await setUp(t, key, { enabled: true, url: log.url })
  await act()
  assert.equal((await anchor()).status, 200)
  const whole = await verifyLedger(auditPath, {})
  assert.deepEqual([whole.verdict, whole.anchors.found, whole.anchors.signed], ['valid', 1, 0])
  const forged = join(tempFolder(), 'audit.jsonl')
  const [anchored] = records(auditPath, 'anchor')
  for (const [member, value] of [
    ['size', anchored.rec.size - 1],
    ['head', '0'.repeat(64)],
    ['note', anchored.rec.note.replace('\n\n', '\nmore\n\n')],
  ] as const) {
    await copyFile(auditPath, forged)
    await rewriteAnchor(forged, (rec) => ({ ...rec, [member]: value }))
    const found = await verifyLedger(forged, { key: key.pub })
    assert.notEqual(found.exitCode, EXIT_CODES.valid, member)
    assert.match(found.message, /anchor|entry of the log/, member)
  }
})

/** Changes the record of an anchor and recomputes the hash of its line, as an attacker with write access could. */
async function rewriteAnchor(path: string, change: (rec: object) => object): Promise<void> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
  const at = lines.findIndex((line) => line.includes('"kind":"anchor"'))
  const { prev, rec, seq, v } = JSON.parse(lines[at] ?? '')
  const rest = canonicalJson({ prev, rec: change(rec), seq, v }).slice(1)
  const line = `{"hash":"${hash('sha256', `plat-ledger-v1\n${rest}`, 'hex')}",${rest}`
  await writeFile(path, `${[...lines.slice(0, at), line].join('\n')}\n`)
}

/** Number of checkpoints beside a ledger: from then on they can be anchored. */
const checkpointCount = (path: string): number => {
  const beside = checkpointsPath(path)
  return existsSync(beside) ? wholeLines(beside).length : 0
}

/** The feature alone, on a manual clock. */
async function timed(t: TestContext, log: TestLog, own: object = {}, algorithm: 'ES256' | 'EdDSA' = 'ES256') {
  const dir = tempFolder()
  const key = await keyFiles(algorithm)
  const clock = new TestClock()
  const path = join(dir, 'audit.jsonl')
  const audited = {
    auditPath: path,
    auditCheckpointKey: key.uri,
    auditCheckpointPQKey: '',
    auditCheckpointPublicKeyFiles: [],
    auditCheckpointIntervalSeconds: 60,
    auditCheckpointEvery: 1000,
    auditSegmentBytes: 65_536,
    auditSegmentSeconds: 0,
    auditVerifyBytesPerSecond: 1_048_576,
  }
  const transparencyLog = {
    enabled: true,
    url: log.url,
    api: 'v1' as const,
    intervalSeconds: 3600,
    publicKeyFiles: [log.keyFile],
    timeoutSeconds: 30,
    jurisdiction: '',
    ...own,
  }
  const metrics = createGatewayMetrics(buildInfo('gateway'), { ...audited, transparencyLog })
  // Requests in progress must not time out when the test advances the clock.
  const dialer = createDialer({ ...('timeoutSeconds' in own && { clock }), log: silentLog })
  t.after(() => dialer.close())
  const open = async () => {
    const shared = { clock, ids: systemIds(clock), log: silentLog, metrics, since: null, onRecord() {} }
    const audit = await createAudit({ ...shared, env: {}, config: audited })
    const { ledgers, checkpoints } = audit
    const ledger = ledgers.of('')
    const parts = { config: { transparencyLog }, ledger, checkpoints, dialer, clock, log: silentLog }
    const anchors = await createTransparency({ ...parts, metrics })
    const close = async () => {
      await anchors.close()
      await audit.close()
    }
    return { audit, close }
  }
  /** Then advances the clock a little, for the ledger's write batches. */
  const turn = async (seconds: number, reached: () => boolean, what: string) => {
    await clock.advance(seconds * 1000)
    await until(reached, what, () => clock.advance(1))
  }
  return { path, open, turn, clock, metrics }
}

test('checkpoints are anchored at the interval, sooner after a failure, and never for their own records alone', async (t) => {
  // Shows D3.transparencyLog.intervalSeconds.
  const log = await startLog(t)
  const { path, open, turn, clock, metrics } = await timed(t, log)
  const started = clock.now()
  /** Advances the clock by seconds until `reached()`: the next due time is known only after the running anchor. */
  const inTime = (reached: () => boolean, what: string) => until(reached, what, () => clock.advance(30_000))
  const first = await open()
  await first.audit.ledgers.of('').append({ kind: 'alert' })
  await turn(60, () => checkpointCount(path) === 1, 'a checkpoint')
  log.mangle = () => null
  const failures = () => /anchor_errors_total (\d+)/.exec(metrics.expose())?.[1] ?? '0'
  await turn(3540, () => failures() === '1', 'the failure at the interval')
  log.mangle = (answer) => answer
  await inTime(() => records(path, 'anchor').length === 1, 'the anchor, long before the next interval')
  assert.ok(clock.now() < started + 2 * 3_600_000)
  await inTime(() => checkpointCount(path) === 2, 'a checkpoint over the anchor')
  await first.close()

  // A restarted gateway reads the anchored position from the ledger.
  const second = await open()
  assert.match(metrics.expose(), /^plat_gateway_audit_anchor_seq \d+$/m)
  const before = log.entries.length
  await turn(3600, () => records(path, 'checkpoint').length >= 2, 'an interval without anything new')
  await second.audit.ledgers.of('').append({ kind: 'alert' })
  await inTime(() => records(path, 'anchor').length === 2, 'its anchor')
  assert.equal(log.entries.length, before + 1)
  await second.close()
})

test('requests to an unresponsive log time out', async (t) => {
  // Shows D3.transparencyLog.timeoutSeconds.
  const log = await startLog(t)
  let requests = 0
  const silent = createServer((socket) => {
    requests++
    socket.on('error', () => {})
    t.after(() => socket.destroy())
  })
  t.after(() => silent.close())
  const silentPort = await listening(silent)
  const stuck = await timed(t, { ...log, url: `http://127.0.0.1:${silentPort}` }, { timeoutSeconds: 7 })
  const { audit, close } = await stuck.open()
  await audit.ledgers.of('').append({ kind: 'alert' })
  await stuck.turn(60, () => checkpointCount(stuck.path) === 1, 'a checkpoint')
  await stuck.turn(3540, () => requests === 1, 'a request')
  await stuck.clock.advance(4000)
  assert.doesNotMatch(stuck.metrics.expose(), /anchor_errors_total 1/)
  await stuck.turn(3, () => /anchor_errors_total 1/.test(stuck.metrics.expose()), 'the failure')
  await close()
})

test('a log of api v2 with an Ed25519 key refuses to start, naming the accepted keys', async (t) => {
  const { open } = await timed(t, await startLog(t), { api: 'v2' }, 'EdDSA')
  await assert.rejects(
    open(),
    /^Error: transparencyLog.api: v2 does not accept the EdDSA key of auditCheckpointKey; use a P-256/,
  )
})
