import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock } from '@plat/core'
import { copyFiles, copyPath, LedgerSequence, leave, rebuildLedger, verifyLedger } from '@plat/ledger'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { addRecords, CopiedLedgers, TestDisk } from '../testing/copied.ts'
import { keyFiles } from '../testing/keys.ts'
import { sourceOf } from './agree.ts'

const postgres = usePostgres()
const replicas = new CopiedLedgers(postgres)
/** Small files, so that segments are sealed. */
const SMALL = { config: { auditSegmentBytes: 30_000 } }
type Replica = Awaited<ReturnType<CopiedLedgers['open']>>

// Clocks do not keep a process alive.
const alive = setInterval(() => {}, 1000)
before(() => alive.ref())
after(() => clearInterval(alive))

const shipped = (replica: Replica) => until(() => replica.gauge('copy_lag') === 0, 'the copy to be level')

async function copyOf({ audit, state }: Replica) {
  const copy = (await state.ledgerCopies.list()).find(({ ledgerId }) => ledgerId === audit.ledgerId)
  return copy ?? assert.fail('there is no copy')
}

/** All lines of the copy, as one text. */
async function copiedText(replica: Replica): Promise<string> {
  const source = sourceOf(replica.state.ledgerCopies, await copyOf(replica))
  await using sequence = await LedgerSequence.open(copyPath(source.ledgerId), await copyFiles(source))
  const all = Buffer.alloc(await sequence.size())
  assert.equal(await sequence.read(all, 0), all.length)
  return all.toString()
}

function localText(path: string): string {
  const folder = join(path, '..')
  const names = readdirSync(folder).filter((name) => /^audit\.jsonl\.\d{20}\.jsonl$/.test(name))
  return [...names.toSorted().map((name) => join(folder, name)), path]
    .map((file) => readFileSync(file, 'utf8'))
    .join('')
}

async function verdict(path: string): Promise<string> {
  const { verdict, checkpoints, message } = await verifyLedger(path, { key: (await replicas.key()).pub, strict: true })
  assert.ok(checkpoints.signed > 0 && checkpoints.signed === checkpoints.found, message)
  return verdict
}

const records = (path: string) =>
  localText(path)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test('the copy has the bytes of the ledger, segments and the tail', async () => {
  const disk = new TestDisk()
  const replica = await replicas.open(disk.path, SMALL)
  await addRecords(replica.audit, 200)
  await shipped(replica)
  assert.ok(
    readdirSync(disk.folder).some((name) => /\d{20}\.jsonl$/.test(name)),
    'no segment was sealed',
  )
  await until(async () => (await copiedText(replica)) === localText(disk.path), 'the same text in the copy')
  await addRecords(replica.audit, 1)
  await replica.close()
  const again = await replicas.open(disk.path, SMALL)
  assert.equal((await copyOf(again)).seq >= 201, true, 'the last records were shipped at the stop')
  await again.close()
})

test('shipping resumes after the database was away, and says how far behind it is', async () => {
  // Shows D3.metric.plat_gateway_audit_copy_lag and D3.metric.plat_gateway_audit_copy_lag_seconds.
  const disk = new TestDisk()
  const replica = await replicas.open(disk.path, SMALL)
  await addRecords(replica.audit, 10)
  await shipped(replica)
  await postgres.stop()
  await addRecords(replica.audit, 90)
  await until(() => replica.logged.some((line) => line.includes('cannot be copied')), 'the failure in the log')
  assert.ok(replica.gauge('copy_lag') >= 90)
  assert.ok(replica.gauge('copy_lag_seconds') > 0)
  assert.equal(replica.gauge('copies_stuck'), 0)
  await postgres.start()
  await until(async () => (await copiedText(replica)) === localText(disk.path), 'the same text in the copy')
  await replica.close()
})

test('a replica without its disk goes on from the copy, and the public key verifies the result', async () => {
  // Shows D3.audit.auditAcceptDivergedMirror.
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 150)
  const { ledgerId } = first.audit
  await first.close()
  const before = localText(disk.path)
  disk.delete()
  const second = await replicas.open(disk.path, SMALL)
  assert.equal(second.audit.ledgerId, ledgerId)
  assert.ok(localText(disk.path).startsWith(before), 'the ledger does not go on from what it was')
  const recovered = records(disk.path).find(({ rec }) => rec.kind === 'recovered')
  assert.equal(recovered?.rec.reason, 'no disk')
  assert.equal(recovered?.rec.copySeq, recovered?.seq - 1)
  await addRecords(second.audit, 40)
  await second.close()
  assert.equal(await verdict(disk.path), 'valid')
  const third = await replicas.open(disk.path, SMALL)
  assert.equal(await copiedText(third).then((text) => text.startsWith(before)), true)
  await third.close()
})

test('a replica whose disk was rolled back refuses, and with auditAcceptDivergedMirror sets its ledger aside', async () => {
  // Shows D3.audit.auditAcceptDivergedMirror.
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 60)
  await first.close()
  disk.save()
  const second = await replicas.open(disk.path, SMALL)
  await addRecords(second.audit, 60)
  await second.close()
  const before = localText(disk.path)
  disk.restore()
  const rolledBack = localText(disk.path)
  const refusal =
    /does not continue its copy .* ends at record \d+ \(hash [0-9a-f]{64}\): it ends at record \d+\. Restore the disk, or set auditAcceptDivergedMirror/
  await assert.rejects(replicas.open(disk.path, SMALL), refusal)
  assert.equal(localText(disk.path), rolledBack, 'a refused start changed the ledger')
  const accepting = await replicas.open(disk.path, { config: { ...SMALL.config, auditAcceptDivergedMirror: true } })
  await accepting.close()
  assert.ok(localText(disk.path).startsWith(before))
  const recovered = records(disk.path).find(({ rec }) => rec.kind === 'recovered')?.rec
  assert.equal(recovered?.reason, 'diverged')
  assert.equal(
    localText(join(disk.folder, recovered?.file, 'audit.jsonl')),
    rolledBack,
    'what was set aside is not complete',
  )
  assert.equal(await verdict(disk.path), 'valid')
  await (await replicas.open(disk.path, SMALL)).close()
})

test('a ledger with another history than its copy is refused, whether it is longer or of another id', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 30)
  await first.close()
  disk.save()
  const second = await replicas.open(disk.path, SMALL)
  await addRecords(second.audit, 10, { history: 'one' })
  await second.close()
  disk.restore()
  await postgres.rows('DELETE FROM plat.ledger_head WHERE ledger = $1', [first.audit.ledgerId])
  const alone = await replicas.open(disk.path, { ...SMALL, isAlone: true })
  await addRecords(alone.audit, 100, { history: 'other' })
  await alone.close()
  await assert.rejects(replicas.open(disk.path, SMALL), /its record \d+ has hash [0-9a-f]{64}\. Restore the disk/)
  disk.delete()
  await (await replicas.open(disk.path, { ...SMALL, isAlone: true })).close()
  await assert.rejects(replicas.open(disk.path, SMALL), /it is ledger [0-9a-f-]{36}, and the copy is of ledger/)
})

test('nothing is rebuilt from a copy that was changed in the database', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 100)
  const { ledgerId } = first.audit
  await first.close()
  disk.delete()
  const chunks = await postgres.rows('SELECT first, data FROM plat.ledger_chunk WHERE ledger = $1 ORDER BY first', [
    ledgerId,
  ])
  const [one] = chunks
  assert.ok(one !== undefined && chunks.length > 2)
  const changes = [
    `UPDATE plat.ledger_chunk SET data = set_byte(data, 40, (get_byte(data, 40) + 1) % 256) WHERE ledger = $1 AND first = 0`,
    `UPDATE plat.ledger_chunk SET data = (SELECT data FROM plat.ledger_chunk WHERE ledger = $1 ORDER BY first DESC LIMIT 1) WHERE ledger = $1 AND first = 0`,
    `DELETE FROM plat.ledger_chunk WHERE ledger = $1 AND first = (SELECT max(first) FROM plat.ledger_chunk WHERE ledger = $1)`,
    `UPDATE plat.ledger_copy SET hash = repeat('a', 64) WHERE ledger = $1`,
    `UPDATE plat.ledger_chunk SET prev = repeat('a', 64) WHERE ledger = $1 AND first > 0`,
  ]
  for (const change of changes) {
    await postgres.beside(async (client) => {
      await client.query('CREATE TABLE plat.kept_chunk AS SELECT * FROM plat.ledger_chunk')
      await client.query('CREATE TABLE plat.kept_copy AS SELECT * FROM plat.ledger_copy')
      await client.query(change, [ledgerId])
    })
    await assert.rejects(replicas.open(disk.path, SMALL), /was changed, and nothing is rebuilt from it: /, change)
    assert.equal(readdirSync(disk.folder).includes('audit.jsonl'), false, change)
    await postgres.beside(async (client) => {
      await client.query('DELETE FROM plat.ledger_chunk; DELETE FROM plat.ledger_copy')
      await client.query('INSERT INTO plat.ledger_copy SELECT * FROM plat.kept_copy')
      await client.query('INSERT INTO plat.ledger_chunk SELECT * FROM plat.kept_chunk')
      await client.query('DROP TABLE plat.kept_chunk, plat.kept_copy')
    })
  }
  await (await replicas.open(disk.path, SMALL)).close()
})

test('two processes cannot write one copy: the second one is refused, and one that lost it says so', async () => {
  // Shows D3.metric.plat_gateway_audit_copies_stuck.
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 10)
  await shipped(first)
  const { ledgerId } = first.audit
  const seconds = { n: 0 }
  const hasty = {
    ...systemClock,
    now: () => systemClock.now(),
    monotonic: () => (seconds.n += 5_000),
    after: (_ms: number, job: () => void) => systemClock.after(1, job),
    every: (ms: number, job: () => void) => systemClock.every(ms, job),
  }
  // The same name on another disk: the file is not there.
  const { path } = await copyOf(first)
  const elsewhere = new TestDisk()
  await postgres.rows('UPDATE plat.ledger_copy SET path = $1 WHERE ledger = $2', [elsewhere.path, ledgerId])
  await assert.rejects(
    replicas.open(elsewhere.path, { clock: hasty }),
    /another gateway writes the copy .* give each replica a host name/,
  )
  await postgres.rows('UPDATE plat.ledger_copy SET path = $1 WHERE ledger = $2', [path, ledgerId])
  await postgres.rows(`UPDATE plat.ledger_copy SET writer = 'x', until = now() + interval '1 hour' WHERE ledger = $1`, [
    ledgerId,
  ])
  await addRecords(first.audit, 10)
  await until(() => first.gauge('copies_stuck') === 1, 'the metric')
  assert.ok(first.logged.some((line) => line.includes('another process writes its copy')))
  await postgres.rows(`UPDATE plat.ledger_copy SET until = now() WHERE ledger = $1`, [ledgerId])
  await shipped(first)
  assert.equal(first.gauge('copies_stuck'), 0)
  await first.close()
})

test('a segment that left the ledger leaves its copy, from which the rest is rebuilt', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 200)
  await shipped(first)
  const { ledgerId, segments } = first.audit
  const oldest = await oldestSegment(disk.path)
  const checkpoint = await first.audit.checkpoints.last(true)
  const departure = {
    archive: '/archive/one',
    checkpoint: checkpoint?.text ?? assert.fail(),
    left: new Date().toISOString(),
  }
  await leave({ ledgerPath: disk.path, list: segments.list, files: null }, oldest, departure)
  await first.close()
  const second = await replicas.open(disk.path, SMALL)
  const start = async () => (await second.state.ledgerCopies.chunks(ledgerId, 0, 1))[0]?.first
  await until(async () => (await start()) === oldest.last + 1, 'the segment to leave the copy')
  await second.close()
  const before = localText(disk.path)
  disk.delete()
  await (await replicas.open(disk.path, SMALL)).close()
  assert.ok(localText(disk.path).startsWith(before))
  const found = await verifyLedger(disk.path, { key: (await replicas.key()).pub, strict: true })
  assert.equal(found.verdict, 'valid', found.message)
  assert.deepEqual(found.archived, [{ first: 0, last: oldest.last, archive: '/archive/one' }])
})

async function oldestSegment(path: string) {
  await using sequence = await LedgerSequence.open(path)
  return sequence.segments[0] ?? assert.fail('no segment was sealed')
}

test('the ledger of a tenant has a separate copy, which requests for another tenant do not reach', async () => {
  const disk = new TestDisk()
  const one = await replicas.open(disk.path, SMALL)
  const red = await one.audit.open({ tenant: 'red', path: join(disk.folder, 'red.jsonl'), since: null, onRecord() {} })
  await red.ledger.append({ kind: 'admin', action: 'of red' })
  await one.audit.ledgers.of('').append({ kind: 'admin', action: 'of the fleet' })
  await shipped(one)
  const { audit, close } = await replicas.open(new TestDisk().path, SMALL)
  const ids = async (tenant: string) => (await audit.fleet.list(tenant)).map(({ ledgerId }) => ledgerId)
  assert.deepEqual(await ids('red'), [red.ledgerId])
  assert.ok((await ids('')).includes(one.audit.ledgerId))
  assert.ok(!(await ids('')).includes(red.ledgerId))
  await assert.rejects(audit.fleet.ledgers('', red.ledgerId), { code: 'not_found' })
  await assert.rejects(audit.fleet.ledgers('red', one.audit.ledgerId), { code: 'not_found' })
  const seen = new Map<unknown, string[]>()
  audit.follow(({ action }, _at, tenant) => void seen.set(action, [...(seen.get(action) ?? []), tenant]))
  await until(() => seen.has('of red') && seen.has('of the fleet'), 'the records of both')
  assert.deepEqual([seen.get('of red'), seen.get('of the fleet')], [['red'], ['']])
  await close()
  await one.close()
})

test('records that were durable, and are in no copy when the disk is lost, are stated as lost', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 20)
  const { ledgerId } = first.audit
  await first.close()
  disk.delete()
  const [row] = await postgres.rows('SELECT head FROM plat.ledger_head WHERE ledger = $1', [ledgerId])
  const head = JSON.parse(String(row?.head))
  // As if ten more records had been durable for less than a second.
  const later = JSON.stringify({ v: 1, ledgerId, seq: head.seq + 10, hash: 'b'.repeat(64) })
  await postgres.rows('UPDATE plat.ledger_head SET head = $1 WHERE ledger = $2', [later, ledgerId])
  await (await replicas.open(disk.path, SMALL)).close()
  const recovered = records(disk.path).find(({ rec }) => rec.kind === 'recovered')
  assert.equal(recovered?.rec.lostUpTo, head.seq + 10)
  assert.equal(recovered?.seq, head.seq + 1)
  await (await replicas.open(disk.path, SMALL)).close()
})

test('a rebuild that a crash interrupts is completed by the next start, and recorded once', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 100)
  await first.close()
  const before = localText(disk.path)
  disk.save()
  const second = await replicas.open(disk.path, SMALL)
  await addRecords(second.audit, 100)
  await second.close()
  const whole = localText(disk.path)
  disk.restore()
  const state = await replicas.state()
  const [found] = (await state.ledgerCopies.list()).filter(({ ledgerId }) => ledgerId === second.audit.ledgerId)
  const source = sourceOf(state.ledgerCopies, found ?? assert.fail())
  const aside = { folder: 'audit.jsonl.aside-test', last: 1, ledgerId: null }
  const options = { path: disk.path, keys: null, maxUnproven: 0, reason: 'diverged' as const, lostUpTo: null, aside }
  await rebuildLedger({ ...options, source })
  // Back to the moment before the second new file got its place.
  const plan = join(disk.folder, 'audit.jsonl.rebuild.json')
  const staging = join(disk.folder, 'audit.jsonl.rebuild')
  const names = readdirSync(disk.folder).filter((name) => /^audit\.jsonl(\.\d{20}\.jsonl)?$/.test(name))
  const old = readdirSync(join(disk.folder, aside.folder))
  mkdirSync(staging, { recursive: true })
  for (const name of names.slice(1)) renameSync(join(disk.folder, name), join(staging, name))
  for (const name of old.filter((one) => !names.includes(one)))
    renameSync(join(disk.folder, aside.folder, name), join(disk.folder, name))
  const { rebuilt } = JSON.parse(readFileSync(plan, 'utf8'))
  writeFileSync(plan, JSON.stringify({ rebuilt, old, now: names }))
  await state.close()
  await (await replicas.open(disk.path, SMALL)).close()
  assert.ok(localText(disk.path).startsWith(whole))
  assert.equal(localText(join(disk.folder, aside.folder, 'audit.jsonl')), before)
  await (await replicas.open(disk.path, SMALL)).close()
  assert.equal(records(disk.path).filter(({ rec }) => rec.kind === 'recovered').length, 1)
})

test('a copy whose checkpoints no published key signed is not rebuilt', async () => {
  const disk = new TestDisk()
  const first = await replicas.open(disk.path, SMALL)
  await addRecords(first.audit, 60)
  await first.close()
  disk.delete()
  const other = await keyFiles()
  const config = { ...SMALL.config, auditCheckpointKey: other.uri }
  await assert.rejects(replicas.open(disk.path, { config }), /nothing is rebuilt from it: broken at record \d+ .*key/)
  assert.equal(readdirSync(disk.folder).includes('audit.jsonl'), false)
  const auditCheckpointPublicKeyFiles = [(await replicas.key()).pub]
  await (await replicas.open(disk.path, { config: { ...config, auditCheckpointPublicKeyFiles } })).close()
  assert.ok(records(disk.path).some(({ rec }) => rec.kind === 'recovered'))
})
