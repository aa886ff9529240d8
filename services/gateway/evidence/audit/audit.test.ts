import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildInfo, systemIds, TestClock } from '@plat/core'
import type { Log } from '@plat/process'
import { type DiskFault, MemoryDisk } from '@plat/testkit/disk'
import { createGatewayMetrics } from '../../metrics.ts'
import { createAudit } from './index.ts'

/** Opens an audit ledger on a disk with these faults, and returns its metrics and log lines. */
async function opened(faults: readonly DiskFault[]) {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const logged: string[] = []
  const log: Log = {
    debug() {},
    info() {},
    warn: (_fields, message) => void logged.push(message),
    error: (_fields, message) => void logged.push(message),
    child: () => log,
  }
  const clock = new TestClock()
  const files = new MemoryDisk(new Map(), faults)
  const config = {
    auditPath: join(dir, 'audit.jsonl'),
    auditCheckpointKey: '',
    auditCheckpointPQKey: '',
    auditCheckpointPublicKeyFiles: [],
    auditCheckpointIntervalSeconds: 60,
    auditCheckpointEvery: 1000,
    auditSegmentBytes: 65_536,
    auditSegmentSeconds: 0,
    auditVerifyBytesPerSecond: 1_048_576,
  }
  const metrics = createGatewayMetrics(buildInfo('gateway'), config)
  const audit = await createAudit({
    config,
    env: {},
    clock,
    ids: systemIds(clock),
    log,
    metrics,
    files,
    since: null,
    onRecord() {},
  })
  const series = (name: string) => {
    const found = new RegExp(`^plat_gateway_audit_${name} (\\S+)$`, 'm').exec(metrics.expose())
    return Number(found?.[1])
  }
  return {
    audit,
    clock,
    logged,
    series,
    operations: () => files.operations,
    remove: () => rm(dir, { recursive: true }),
  }
}

test('a record that cannot be made durable is counted and logged, and the head does not move', async () => {
  // Shows D3.metric.plat_gateway_audit_errors_total.
  const sound = await opened([])
  const before = sound.operations()
  await sound.audit.ledgers.of('').append({ kind: 'alert' })
  assert.deepEqual([sound.series('errors_total'), sound.series('head_seq')], [0, 1])
  await sound.audit.close()
  await sound.remove()

  const broken = await opened([{ at: before + 1, kind: 'EIO' }])
  await assert.rejects(broken.audit.ledgers.of('').append({ kind: 'alert' }))
  assert.deepEqual([broken.series('errors_total'), broken.series('head_seq')], [1, 0])
  assert.match(broken.logged.join(), /the audit ledger cannot be written/)
  await broken.audit.close()
  await broken.remove()
})

test('segments are sealed at their size and counted', async () => {
  // Shows D3.audit.auditSegmentBytes, D3.metric.plat_gateway_audit_segments and
  // D3.metric.plat_gateway_audit_sealing_failures_total.
  const { audit, series, remove } = await opened([])
  for (let count = 0; series('segments') !== 2; count++) {
    assert.ok(count < 2000, 'two segments')
    await audit.ledgers.of('').append({ kind: 'alert', reason: 'x'.repeat(500) })
  }
  assert.equal(series('sealing_failures_total'), 0)
  await audit.close()
  await remove()
})
