import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import {
  ArchivedError,
  LedgerReader,
  openLedger,
  receiptBeside,
  verifyLedger,
  verifyReceipt,
  writeLegalHolds,
} from '@plat/ledger'
import { until } from '@plat/testkit/until'
import { createAudit } from '../evidence/audit/index.ts'
import { startS3 } from '../evidence/audit-sinks/testing/s3.ts'
import { startHttpReceiver } from '../evidence/audit-sinks/testing/servers.ts'
import { DAY_MS, filesOf, fill, listed, setUp, stillHere, untilPass } from './testing/retention.ts'

test('a removed segment is archived and listed; chain, receipts and readers hold; and it is read again when it is copied back', async (t) => {
  // Shows D3.audit.auditRetention.archive, D3.audit.auditRetention.days, D3.metric.plat_gateway_audit_segments_left_total,
  // D3.metric.plat_gateway_audit_segments_here, D3.metric.plat_gateway_audit_segment_bytes and
  // D3.metric.plat_gateway_audit_oldest_record_seconds.
  const s3 = await startS3(t, 'secret')
  const fixture = await setUp(t, { archive: 's3', days: 1, s3 })
  const { auditPath, audit, clock, key, gauge } = fixture
  const segments = await fill(fixture, 3)
  await audit.checkpoints.last(true)
  const receipt = await receiptBeside(auditPath, 5)
  const retention = fixture.start()
  await untilPass(fixture, () => gauge('segments_here') >= 3, 'the first pass')
  assert.equal(stillHere(auditPath, segments).length, segments.length)
  const sizes = segments.map(({ file }) => statSync(join(auditPath, '..', file ?? '')).size)
  await until(() => gauge('segment_bytes') >= sizes.reduce((sum, size) => sum + size, 0), 'their bytes are counted')
  await clock.advance(DAY_MS + 3_600_000)
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  const left = (await listed(auditPath)).filter((segment) => segment.left !== null)
  assert.ok(left.length >= 3)
  for (const { archive, checkpoint, file } of left) {
    assert.match(archive ?? '', /^http:.*\/bucket\/plat\/[0-9a-f-]{36}\/audit\.jsonl\.\d{20}\.jsonl$/)
    assert.match(checkpoint ?? '', /"kind":"checkpoint"/)
    assert.equal(file, null)
  }
  await until(() => gauge('segments_left_total\\{how="archived"\\}') >= left.length, 'the count of those that left')
  const found = verifyReceipt(receipt, { keys: [key.signer.publicKey], hmacKey: null })
  assert.ok(typeof found !== 'string' && found.signed === true)
  await assert.rejects(receiptBeside(auditPath, 5), ArchivedError)
  const reader = await LedgerReader.open(auditPath, null)
  const [first] = await reader.next({ upTo: audit.placed().seq, count: 1, bytes: 1 })
  assert.ok((first?.seq ?? 0) > (segments.at(-1)?.last ?? 0))
  await reader.close()
  const verified = await verifyLedger(auditPath, { beside: true })
  assert.equal(verified.exitCode, 0, verified.message)
  assert.equal(verified.archived[0]?.first, 0)
  // Copied back; by the clock of the test any file is older than the departure, and would be removed as a leftover.
  await retention.close()
  const [oldest] = left
  const object = s3.objects.get(new URL(oldest?.archive ?? '').pathname)
  const restored = `${auditPath}.${'0'.repeat(20)}.jsonl`
  writeFileSync(restored, object?.subarray(0, 2000) ?? '')
  await assert.rejects(receiptBeside(auditPath, 5), ArchivedError, 'a copy that is not complete')
  const other = await setUp(t, { archive: 'delete' })
  const [foreign] = await fill(other, 1)
  writeFileSync(restored, readFileSync(join(other.auditPath, '..', foreign?.file ?? '')))
  await assert.rejects(receiptBeside(auditPath, 5), ArchivedError, 'the segment of another ledger')
  writeFileSync(restored, object ?? '')
  assert.deepEqual(
    await receiptBeside(auditPath, 5).then((one) => typeof one !== 'string' && one.line),
    typeof receipt !== 'string' && receipt.line,
  )
  await audit.segments.list.change((segments) => segments)
  rmSync(restored)
  await assert.rejects(receiptBeside(auditPath, 5), ArchivedError, 'removed again')
})

test('a start goes on after segments left, also without saved state, and sinks that are new begin with what is here', async (t) => {
  const fixture = await setUp(t, { archive: 'delete', days: 1 })
  const { auditPath, audit, clock, shared } = fixture
  const before = await fill(fixture, 3)
  await audit.checkpoints.last(true)
  fixture.start()
  await clock.advance(DAY_MS + 3_600_000)
  await untilPass(fixture, () => stillHere(auditPath, before).length === 0, 'all to leave')
  const { ledgerId } = JSON.parse(before[0]?.record ?? '{}').rec
  await audit.close()
  const again = await createAudit(shared)
  await again.ledgers.of('').append({ kind: 'alert' })
  const checkpoint = await again.checkpoints.last(true)
  assert.match(String(checkpoint?.rec.note), new RegExp(`plat.dev/ledger/${ledgerId}`))
  await again.close()
  const last = (await listed(auditPath)).at(-1)
  const { place } = { place: JSON.parse(last?.record ?? '{}') }
  await (await LedgerReader.open(auditPath, { seq: place.seq, hash: place.hash })).close()
  await assert.rejects(LedgerReader.open(auditPath, { seq: place.seq, hash: '0'.repeat(64) }), /does not hold record/)
  const { clock: other, ids } = shared
  await (await openLedger({ path: auditPath, tenant: '', replica: 'r', clock: other, ids })).close()
})

test('no segment leaves before sinks have it: slow, dead, and dead then back', async (t) => {
  // Shows D3.audit.auditRetention.covered, D3.audit.auditRetention.bytes and D3.metric.plat_gateway_audit_segments_waiting.
  const receiver = await startHttpReceiver(t)
  receiver.answers = () => ({ status: 503 })
  const fixture = await setUp(t, { archive: 'file', bytes: 1, sink: receiver.url })
  const { auditPath, audit, clock, gauge, config } = fixture
  // It covers none of the segments that are sealed later.
  await audit.checkpoints.last(true)
  const segments = await fill(fixture, 3)
  fixture.start()
  await clock.advance(3_600_000)
  const waiting = (reason: string) => gauge(`segments_waiting\\{reason="${reason}"\\}`)
  await untilPass(fixture, () => waiting('checkpoint') >= 3, 'the wait for a checkpoint')
  await audit.checkpoints.last(true)
  await untilPass(fixture, () => waiting('sinks') >= 3, 'the wait for the sink')
  assert.equal(stillHere(auditPath, segments).length, segments.length)
  // Slow: as far as it got.
  const upTo = (segments[0]?.last ?? 0) + 2
  const seen = ({ body }: { readonly body: string }) =>
    body.match(/"seq":\d+,"v":1\}/g)?.length ?? body.split('\n').length
  receiver.answers = (posted) => ({ status: seen(posted) > 1 ? 413 : nextSeq(auditPath) > upTo ? 503 : 200 })
  await untilPass(
    fixture,
    () => stillHere(auditPath, segments).length === segments.length - 1,
    'the first one to leave',
  )
  for (let pass = 0; pass < 5; pass++) await clock.advance(60_000)
  assert.equal(stillHere(auditPath, segments).length, segments.length - 1)
  receiver.answers = () => ({ status: 200 })
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'the others')
  const [id = ''] = readdirSync(config.auditRetention.path)
  assert.equal(readdirSync(join(config.auditRetention.path, id)).length >= segments.length, true)
})

/** The record that the sink delivers next. */
function nextSeq(auditPath: string): number {
  try {
    return JSON.parse(readFileSync(join(`${auditPath}.sinks`, 'siem.cursor.json'), 'utf8')).seq + 1
  } catch {
    return 0
  }
}

test('held and damaged segments stay while later ones leave, and unreadable holds keep everything', async (t) => {
  // Shows D3.metric.plat_gateway_audit_segments_held and D3.metric.plat_gateway_audit_retention_failures_total.
  const fixture = await setUp(t, { archive: 'delete', days: 1 })
  const { auditPath, audit, clock, gauge, logged } = fixture
  const segments = await fill(fixture, 5)
  await audit.checkpoints.last(true)
  const [first, second, third] = filesOf(auditPath)
  const sessionIn = /"session":"(s\d+)"/.exec(readFileSync(join(auditPath, '..', first ?? ''), 'utf8'))?.[1]
  const hold = (target: Parameters<typeof writeLegalHolds>[1][number]['target']) => ({
    id: 'h',
    at: '',
    by: 'token:admin',
    reason: '',
    target,
  })
  const holds = [
    hold({ session: `default/assistant/${sessionIn}` }),
    hold({ agent: 'default/other' }),
    hold({ from: segments[1]?.last ?? 0, to: segments[1]?.last ?? 0 }),
  ]
  const damaged = join(auditPath, '..', third ?? '')
  writeFileSync(damaged, readFileSync(damaged, 'utf8').replace('xxx', 'yyy'))
  writeFileSync(`${auditPath}.legal-holds.json`, '{')
  await clock.advance(DAY_MS + 3_600_000)
  fixture.start()
  await until(() => gauge('retention_failures_total') === 1, 'the failure')
  assert.match(logged.join('\n'), /cannot leave, will retry.*legal-holds\.json is malformed/)
  assert.equal(stillHere(auditPath, segments).length, segments.length)
  await writeLegalHolds(auditPath, holds)
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 3, 'the others to leave')
  await untilPass(fixture, () => gauge('segments_held') === 2, 'the count of held ones')
  assert.deepEqual(stillHere(auditPath, segments), [first, second, third])
  assert.match(logged.join('\n'), /is damaged and stays: restore it from a copy.*the hash does not match the line/)
  await writeLegalHolds(auditPath, [])
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 1, 'released ones to leave')
  assert.deepEqual(stillHere(auditPath, segments), [third])
})

/** Faults of the two requests of a small segment. */
const FAULTS_OF_A_SEGMENT = [
  ...([
    ['refused', 'PUT'],
    ['refused', 'GET'],
    ['no response', 'PUT'],
    ['status 503', 'PUT'],
  ] as const),
  ...([
    ['status 403', 'GET'],
    ['changed', 'GET'],
    ['truncated', 'GET'],
    ['short', 'GET'],
  ] as const),
] as const

test('whatever fails at S3, no segment leaves; each failure is logged and counted, and later all leave', async (t) => {
  const s3 = await startS3(t, 'secret')
  const fixture = await setUp(t, { archive: 's3', days: 1, s3 })
  const { auditPath, audit, clock, gauge, logged, key } = fixture
  const segments = await fill(fixture, 3)
  const content = new Map(filesOf(auditPath).map((name) => [name, readFileSync(join(auditPath, '..', name))]))
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  s3.behaves = 'dead'
  fixture.start()
  await untilPass(fixture, () => gauge('retention_failures_total') >= 1, 'the first failure')
  for (const [kind, at] of FAULTS_OF_A_SEGMENT) {
    const [before, lines] = [gauge('retention_failures_total'), logged.length]
    s3.fault = { at, kind }
    s3.behaves = 'well'
    if (kind === 'refused' && at === 'PUT') s3.stop()
    await untilPass(fixture, () => gauge('retention_failures_total') > before, `${kind} at ${at}`)
    // Passes that follow fail as well.
    s3.behaves = 'dead'
    assert.equal(stillHere(auditPath, segments).length, segments.length, `${kind} at ${at}`)
    assert.match(logged.slice(lines).join(), /cannot leave, will retry/)
    assert.ok((await listed(auditPath)).every(({ left }) => left === null))
    await s3.start()
  }
  assert.ok(!readFileSync(auditPath, 'utf8').includes('segment.left'))
  assert.match(logged.join('\n'), /\.jsonl: status 503 \(SlowDown\)/)
  s3.fault = null
  s3.behaves = 'well'
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  for (const { archive, first } of (await listed(auditPath)).filter(({ left }) => left !== null)) {
    const stored = s3.objects.get(new URL(archive ?? '').pathname)
    const own = content.get(basename(archive ?? ''))
    assert.ok(own === undefined || stored?.equals(own), `segment ${first} in the archive`)
  }
  // The records of the departures are signed as well.
  await audit.checkpoints.last(true)
  const { exitCode, message } = await verifyLedger(auditPath, { beside: true, key: key.pub })
  assert.equal(exitCode, 0, message)
})

test('a legal hold that is made while a segment is copied keeps it', async (t) => {
  const s3 = await startS3(t, 'secret')
  const fixture = await setUp(t, { archive: 's3', days: 1, s3 })
  const { auditPath, audit, clock, gauge } = fixture
  const segments = await fill(fixture, 2)
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  const { first = 0, last = 0, file } = segments[0] ?? {}
  s3.onRequest = async (request) => {
    s3.onRequest = async () => {}
    assert.match(request, /^PUT /)
    await writeLegalHolds(auditPath, [
      { id: 'h', at: '', by: 'token:a', reason: '', target: { from: first, to: last } },
    ])
  }
  fixture.start()
  await untilPass(fixture, () => stillHere(auditPath, segments).length < segments.length, 'the other one to leave')
  assert.ok(stillHere(auditPath, segments).includes(file ?? ''))
  await untilPass(fixture, () => gauge('segments_held') === 1, 'the count of held ones')
  assert.equal((await listed(auditPath))[0]?.left, null)
  await writeLegalHolds(auditPath, [])
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'the released one to leave')
})

test('an archive that differs keeps the segments; a crash before the file was removed is completed', async (t) => {
  const s3 = await startS3(t, 'secret')
  s3.behaves = 'corrupt'
  const fixture = await setUp(t, { archive: 's3', days: 1, s3 })
  const { auditPath, audit, clock, gauge, logged } = fixture
  const segments = await fill(fixture, 2)
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  const retention = fixture.start()
  await until(() => gauge('retention_failures_total') > 0, 'the failure')
  assert.match(logged.join('\n'), /reads back differently/)
  assert.equal(stillHere(auditPath, segments).length, segments.length)
  await retention.close()
  // The list says that it left, and its file is still here.
  const [oldest = ''] = filesOf(auditPath)
  const left = new Date(clock.now()).toISOString()
  await audit.segments.list.change((all) =>
    all.map((one) => (one.first === 0 ? { ...one, left, archive: 'there' } : one)),
  )
  assert.ok(statSync(join(auditPath, '..', oldest)).size > 0)
  assert.notEqual(await receiptBeside(auditPath, 1), 'no record')
  fixture.start()
  await untilPass(fixture, () => !filesOf(auditPath).includes(oldest), 'the file to go')
  await assert.rejects(receiptBeside(auditPath, 1), /records 0 to \d+ are archived at there/)
})
