import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { buildInfo, systemIds, TestClock } from '@plat/core'
import type { Log } from '@plat/process'
import type { AppendHandle } from '@plat/state'
import { type DiskFault, MemoryDisk } from '@plat/testkit/disk'
import { until } from '@plat/testkit/until'
import { createGatewayMetrics } from '../../metrics.ts'
import { createAudit } from './index.ts'

/** Opens an audit ledger on a disk with these faults, and returns its metrics and log lines. */
async function opened(faults: readonly DiskFault[], files = new MemoryDisk(new Map(), faults)) {
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
    path: config.auditPath,
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

/** A disk on which files whose names have this ending cannot be written while it is full. */
class PartlyFullDisk extends MemoryDisk {
  isFull = true
  readonly #ending: string

  constructor(ending: string) {
    super()
    this.#ending = ending
  }

  override openAppend(path: string): AppendHandle {
    this.#refuse(path)
    return super.openAppend(path)
  }

  override replace(path: string, bytes: Uint8Array): void {
    this.#refuse(path)
    super.replace(path, bytes)
  }

  #refuse(path: string): void {
    if (!this.isFull || !path.endsWith(this.#ending)) return
    throw Object.assign(new Error(`ENOSPC: no space left on device, open '${path}'`), { code: 'ENOSPC' })
  }
}

test('a full disk under the lists of segments is counted and logged, records go on, and both lists are written when there is room', async () => {
  // Shows D3.metric.plat_gateway_audit_sealing_failures_total.
  for (const ending of ['.segments.json', '.left.1.jsonl']) {
    const disk = new PartlyFullDisk(ending)
    const { audit, clock, logged, series, path, remove } = await opened([], disk)
    const append = () => audit.ledgers.of('').append({ kind: 'alert', reason: 'x'.repeat(500) })
    const sealed = () => disk.list(dirname(path)).filter((name) => /\.\d{20}\.jsonl$/.test(name))
    while (sealed().length === 0) await append()
    const [file = ''] = sealed()
    if (ending === '.left.1.jsonl') {
      await audit.segments.list.change((all) =>
        all.map((one) => ({ ...one, archive: 'there', left: '2026-01-01T00:00:00Z' })),
      )
      disk.remove(join(dirname(path), file))
      await audit.segments.list.update()
    } else {
      await until(() => series('sealing_failures_total') > 0, 'the failure')
    }
    assert.equal(series('sealing_failures_total'), 1, ending)
    assert.match(
      logged.join('\n'),
      /the sealed segments of the audit ledger could not be listed; it will be tried again/,
    )
    assert.equal(series('errors_total'), 0)
    await append()
    disk.isFull = false
    await clock.advance(60_000)
    await until(() => disk.exists(`${path}${ending}`), 'the list')
    assert.equal(series('sealing_failures_total'), 1, ending)
    await audit.close()
    await remove()
  }
})
