import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rfc3339, TestClock } from '@plat/core'
import { RECENT_MS, RecentRecords } from './recent.ts'

test('records of approvals, alerts and revocations of the last day are returned once', () => {
  const clock = new TestClock()
  const recent = new RecentRecords(clock)
  const see = (rec: object) => recent.see(Buffer.from(JSON.stringify(rec)))
  const at = rfc3339(clock.now())
  see({ at, kind: 'approval', approval: 'a' })
  see({ at, kind: 'alert', alert: 'pin.drift' })
  see({ at, kind: 'revocation' })
  see({ at, kind: 'outcome' })
  see({ at, kind: 'anchor' })
  see({ at, kind: 'recovered' })
  see({ at: rfc3339(clock.now() - RECENT_MS - 1_000), kind: 'approval', approval: 'old' })
  see({ at, genesis: true })
  assert.deepEqual(
    recent.take().map(({ kind }) => kind),
    ['approval', 'alert', 'revocation'],
  )
  assert.deepEqual(recent.take(), [])
})
