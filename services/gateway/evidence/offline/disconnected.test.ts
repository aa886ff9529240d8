import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { configWith } from '../../testing/configured.ts'
import { Edge } from './edge.ts'
import { setUpSpool } from './testing/spooled.ts'

test('without configuration an edge is disconnected once the collector has been silent for 300 seconds', async (t) => {
  // Shows D3.limit.disconnected.
  const { clock, write, open, receipt } = await setUpSpool(t)
  const { spool, sealer, sealAll, contact } = await open()
  await write(9)
  await sealAll()
  const edge = new Edge({
    ...{ spool, sealer, contact, clock, log: silentLog, maxStalenessMs: 0, revocationsFile: '', asksLocally: false },
    disconnectedAfterMs: configWith({}).offline.disconnectedAfterSeconds * 1000,
  })
  t.after(() => edge.close())
  await edge.start()
  assert.deepEqual([edge.connected, edge.standing.unapprovable], [false, true], 'before the first receipt')
  assert.equal(await contact.accept(await receipt(9), null), null)
  const after = async (ms: number) => {
    await clock.advance(ms)
    await until(() => edge.standing.unapprovable === !edge.connected, 'the check of each second')
    return edge.connected
  }
  assert.deepEqual([await after(1000), await after(298_999), await after(1)], [true, true, false])
})
