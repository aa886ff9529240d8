import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildInfo, systemClock, systemIds, TestClock } from '@plat/core'
import { LedgerReader, type LedgerSegment, ListKeeper, verifyLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { appendUntilSealed, openSealing } from '@plat/testkit/sealed'
import { until } from '@plat/testkit/until'
import { createGatewayMetrics } from '../../metrics.ts'
import { createRetention } from './index.ts'

const OFF = { archive: 'none', days: 0, bytes: 0 } as const
const none = () => Number.POSITIVE_INFINITY

/** Parts of which compression makes no use. */
const unused = {
  archive: null,
  received: { sinks: none, collector: none, anchors: none, copy: none },
  checkpoints: { last: async () => null, keys: () => [] },
  evidence: async () => async () => false,
  ledger: { append: () => assert.fail() },
  ids: systemIds(systemClock),
}

/** Starts retention for a ledger. */
function started(t: TestContext, auditPath: string) {
  const config = { auditPath, auditSegmentCompression: 'zstd', auditRetention: OFF } as const
  const clock = new TestClock()
  const metrics = createGatewayMetrics(buildInfo('gateway'), {})
  const logged: string[] = []
  const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const log: Log = { debug() {}, info() {}, warn: note, error: note, child: () => log }
  const listeners: ((all: readonly LedgerSegment[]) => void)[] = []
  const list = new ListKeeper(auditPath, null, { onListed: (all) => listeners.forEach((notify) => void notify(all)) })
  const onListed = (notify: (all: readonly LedgerSegment[]) => void) => void listeners.push(notify)
  const retention = createRetention({ ...unused, config, list, onListed, clock, log, metrics })
  t.after(() => retention.close())
  const failures = () => Number(/^plat_gateway_audit_compression_failures_total (\S+)$/m.exec(metrics.expose())?.[1])
  return { list, logged, clock, failures }
}

async function sealed(t: TestContext, segments: number) {
  // Threads do not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const path = join(tempFolder(), 'audit.jsonl')
  const ledger = await openSealing({ path, bytes: 64 * 1024 })
  await appendUntilSealed(ledger, path, segments)
  return { path, ledger }
}

function segmentsOf(path: string): string[] {
  return readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.0`))
}

test('sealed segments are compressed while the ledger is written, and readers go on', async (t) => {
  // Shows D3.audit.auditSegmentCompression.
  const { path, ledger } = await sealed(t, 2)
  const reader = await LedgerReader.open(path, null)
  const [first] = await reader.next({ upTo: 0, count: 1, bytes: 1 })
  assert.equal(first?.seq, 0)
  const plain = segmentsOf(path).reduce((sum, name) => sum + statSync(join(dirname(path), name)).size, 0)
  const { list } = started(t, path)
  // Another one may be sealed meanwhile.
  const areCompressed = (count: number) => async () =>
    segmentsOf(path).length >= count && segmentsOf(path).every((name) => name.endsWith('.jsonl.zst'))
  await until(areCompressed(2), 'two compressed segments', () => list.update())
  const bytes = segmentsOf(path).reduce((sum, name) => sum + statSync(join(dirname(path), name)).size, 0)
  assert.ok(bytes < plain * 0.2, `${bytes} of ${plain} bytes`)
  await appendUntilSealed(ledger, path, 3)
  await until(areCompressed(3), 'three compressed segments', () => list.update())
  await ledger.close()
  const upTo = ledger.head().seq
  const all = await reader.next({ upTo, count: upTo + 1, bytes: 100_000_000 })
  assert.deepEqual(
    all.map(({ seq }) => seq),
    Array.from({ length: upTo + 1 }, (_, seq) => seq),
  )
  await reader.close()
  const found = await verifyLedger(path, { strict: true, beside: true })
  assert.deepEqual([found.exitCode, found.records], [0, upTo + 1], found.message)
})

test('a segment that cannot be compressed stays, is counted and is tried again; a damaged one is passed over', async (t) => {
  // Shows D3.metric.plat_gateway_audit_compression_failures_total.
  const { path, ledger } = await sealed(t, 3)
  await ledger.close()
  const [oldest = '', second = ''] = segmentsOf(path)
  const damaged = join(dirname(path), oldest)
  writeFileSync(damaged, readFileSync(damaged, 'utf8').replace('alice', 'mary!'))
  // A folder in the place of the file: it can neither be written nor removed.

  const obstacle = join(dirname(path), `${second}.zst.tmp`)
  mkdirSync(obstacle)
  const { logged, clock, failures } = started(t, path)
  await until(() => failures() === 2, 'two failures')
  assert.match(logged[0] ?? '', /is damaged and is not compressed .*the hash does not match the line/)
  assert.match(logged[1] ?? '', /could not be compressed, will retry .*(EISDIR|EPERM)/)
  assert.ok(segmentsOf(path).includes(second))
  rmdirSync(obstacle)
  await clock.advance(60_000)
  await until(() => segmentsOf(path).filter((name) => name.endsWith('.jsonl')).length === 1, 'the others')
  assert.equal(failures(), 2)
  assert.ok(segmentsOf(path).includes(oldest))
})

test('compression that is stopped is completed by the next start', async (t) => {
  const { path, ledger } = await sealed(t, 1)
  await ledger.close()
  const config = { auditPath: path, auditSegmentCompression: 'zstd', auditRetention: OFF } as const
  const metrics = createGatewayMetrics(buildInfo('gateway'), {})
  const log: Log = { debug() {}, info() {}, warn() {}, error: () => assert.fail(), child: () => log }
  const parts = {
    ...unused,
    config,
    clock: systemClock,
    log,
    metrics,
    list: new ListKeeper(path, null, {}),
    onListed() {},
  }
  for (let ms = 0; ms < 240; ms += 40) {
    const retention = createRetention(parts)
    await sleep(ms)
    await retention.close()
    const { exitCode, message } = await verifyLedger(path, { beside: true })
    assert.equal(exitCode, 0, message)
  }
  const retention = createRetention(parts)
  t.after(() => retention.close())
  await until(() => segmentsOf(path).every((name) => name.endsWith('.jsonl.zst')), 'the whole of it')
})
