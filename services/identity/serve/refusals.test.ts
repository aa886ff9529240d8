import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import type { Ledger, Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { recordRefused } from './audit.ts'
import { RECORDED_PER_WINDOW, RefusalShares } from './refusals.ts'

function setup() {
  const clock = new TestClock()
  const records: Rec[] = []
  const ledger: Ledger = {
    async append(record) {
      records.push(record)
      return { seq: records.length, hash: '' }
    },
    enter() {},
    head: () => ({ seq: 0, hash: '' }),
    health: 'ok',
    close: async () => {},
  }
  const refusals = new RefusalShares({ ledger, clock, onLost: () => {} })
  const refuse = (sub: string) =>
    recordRefused({ log: silentLog, ledger, refusals }, 'exchange', new OAuthError(400, 'invalid_target', 'no'), {
      sub,
    })
  return { clock, records, refuse, refusals }
}

test('a caller that is refused without end fills no ledger, while refusals of another are recorded', async () => {
  const { clock, records, refuse } = setup()
  for (let n = 0; n < RECORDED_PER_WINDOW + 40; n++) refuse('spiffe://plat.local/ns/a/agent/greedy/session/s')
  assert.equal(records.length, RECORDED_PER_WINDOW)
  refuse('spiffe://plat.local/ns/a/agent/other/session/s')
  assert.equal(records.length, RECORDED_PER_WINDOW + 1)
  await clock.advance(60_000)
  const last = records.at(-1)
  assert.deepEqual([last?.reason, last?.count], ['40 refusals not recorded individually', 40])
  refuse('spiffe://plat.local/ns/a/agent/greedy/session/s')
  assert.equal(records.length, RECORDED_PER_WINDOW + 3)
})

test('counted refusals are recorded before the ledger closes', () => {
  const { records, refuse, refusals } = setup()
  for (let n = 0; n < RECORDED_PER_WINDOW + 1; n++) refuse('spiffe://plat.local/ns/a/agent/greedy/session/s')
  refusals.close()
  assert.equal(records.at(-1)?.count, 1)
})
