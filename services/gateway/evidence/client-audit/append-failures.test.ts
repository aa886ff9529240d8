import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Ledger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { OpenLedger } from '@plat/testkit/open-ledger'
import { until } from '@plat/testkit/until'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createClientAudit } from './index.ts'

test('an anchor that cannot be recorded is counted, and made with the next look', async (t) => {
  // Shows D3.metric.plat_gateway_client_audit_anchor_append_failures_total.
  const dir = tempFolder()
  const file = join(dir, 'client.jsonl')
  new OpenLedger({ path: file }).append(3)
  const [clock, recorded] = [new TestClock(), recordedMetrics()]
  const appended: unknown[] = []
  let isFull = true
  const append: Ledger['append'] = async (rec) => {
    if (isFull) throw new Error('the disk is full')
    appended.push(rec)
    return { seq: 0, hash: '' }
  }
  const ledger: Ledger = { append, enter() {}, head: () => ({ seq: 0, hash: '' }), health: 'ok', async close() {} }
  const anchor = { name: 'a', file, pubkey: '', requireSigned: false, allowRestarts: false, intervalSeconds: 1 }
  const config = { auditPath: join(dir, 'audit.jsonl'), clientAudit: { anchors: [anchor] } }
  const parts = { ledgers: { of: () => ledger }, clock, log: silentLog, metrics: recorded.metrics }
  const feature = await createClientAudit({ config, ...parts })
  t.after(() => feature.close())
  const failures = () => recorded.of('plat_gateway_client_audit_anchor_append_failures_total').length
  await until(() => failures() === 1, 'the failure is counted')
  assert.deepEqual(recorded.of('plat_gateway_client_audit_head_seq'), [])
  isFull = false
  await until(
    () => appended.length === 1,
    'the anchor is recorded',
    () => clock.advance(1000),
  )
  assert.deepEqual(recorded.of('plat_gateway_client_audit_head_seq'), ['a 2'])
})
