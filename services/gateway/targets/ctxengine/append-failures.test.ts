import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Ledger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { OpenLedger } from '@plat/testkit/open-ledger'
import { until } from '@plat/testkit/until'
import { configWith } from '../../testing/configured.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createCtxengine } from './index.ts'

test("an anchor of the engine's ledger that cannot be recorded is counted, and made with the next look", async (t) => {
  // Shows D3.metric.plat_gateway_ctxengine_anchor_append_failures_total.
  const dir = tempFolder()
  const file = join(dir, 'engine.jsonl')
  new OpenLedger({ path: file }).append(3)
  const [clock, recorded] = [new TestClock(), recordedMetrics()]
  let isFull = true
  const append: Ledger['append'] = async () => {
    if (isFull) throw new Error('the disk is full')
    return { seq: 0, hash: '' }
  }
  const ledger: Ledger = { append, enter() {}, head: () => ({ seq: 0, hash: '' }), health: 'ok', async close() {} }
  const { ctxengine } = configWith({ ctxengine: { auditAnchors: [{ name: 'a', file, intervalSeconds: 1 }] } })
  const feature = await createCtxengine({
    config: { auditPath: join(dir, 'audit.jsonl'), ctxengine },
    ledgers: { of: () => ledger },
    dialer: { fetchBytes: () => Promise.reject(new Error('no engine')) },
    extraCA: null,
    credential: () => ({}),
    endpointOf: () => null,
    revocations: { hasRevoked: () => false, followChanges() {}, followCuts() {} },
    clock,
    log: silentLog,
    metrics: recorded.metrics,
  })
  t.after(() => feature.close())
  assert.deepEqual(recorded.of('plat_gateway_ctxengine_anchor_append_failures_total'), ['a'])
  isFull = false
  const heads = () => recorded.of('plat_gateway_ctxengine_audit_head_seq')
  await until(
    () => heads().length === 1,
    'the anchor is recorded',
    () => clock.advance(1000),
  )
  assert.deepEqual(heads(), ['a 2'])
})
