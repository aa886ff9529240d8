import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Ledger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { startSandboxDaemon } from '@plat/testkit/sandbox-daemon'
import { until } from '@plat/testkit/until'
import { configWith } from '../../testing/configured.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createSbxd } from './index.ts'

test("an anchor of the daemon's ledger that cannot be recorded is counted, and made with the next look", async (t) => {
  // Shows D3.metric.plat_gateway_sbxd_anchor_append_failures_total.
  const dir = tempFolder()
  const tokenFile = join(dir, 'token')
  writeFileSync(tokenFile, 'secret')
  const daemon = await startSandboxDaemon({ ledgerPath: join(dir, 'sbxd.jsonl'), token: 'secret' })
  t.after(() => daemon.close())
  const [clock, recorded] = [new TestClock(), recordedMetrics()]
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  let isFull = true
  let appended = 0
  const append: Ledger['append'] = async () => {
    if (isFull) throw new Error('the disk is full')
    return { seq: appended++, hash: '' }
  }
  const ledger: Ledger = { append, enter() {}, head: () => ({ seq: 0, hash: '' }), health: 'ok', async close() {} }
  const { sbxd } = configWith({ sbxd: { url: daemon.url, tokenFile, anchorIntervalSeconds: 1 } })
  const feature = await createSbxd({
    config: { auditPath: join(dir, 'audit.jsonl'), sbxd },
    ledgers: { of: () => ledger },
    ledgerId: 'gateway',
    dialer,
    clock,
    ids: systemIds(clock),
    log: silentLog,
    metrics: recorded.metrics,
  })
  t.after(() => feature.close())
  const failures = () => recorded.of('plat_gateway_sbxd_anchor_append_failures_total').length
  await until(() => failures() === 1, 'the failure is counted')
  isFull = false
  await until(
    () => appended > 0,
    'the anchor is recorded',
    () => clock.advance(1000),
  )
  assert.ok(recorded.of('plat_gateway_sbxd_audit_head_seq').length > 0)
})
