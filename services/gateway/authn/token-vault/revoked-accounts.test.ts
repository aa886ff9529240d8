import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { RevokedAccounts } from './revoked-accounts.ts'
import type { Owner } from './store/account.ts'

const MINUTE_MS = 60_000
const owner = (user: string): Owner => ({ tenant: '', realm: 'r', user, provider: 'hub' })

function setUp() {
  const clock = new TestClock()
  const attempts: string[] = []
  /** Users whose removal fails. */
  const failing = new Set<string>()
  const removals = new RevokedAccounts({
    accounts: { list: () => [] },
    vault: {
      async remove({ user }) {
        attempts.push(user)
        if (failing.has(user)) throw new Error('the key service is unavailable')
        return true
      },
    },
    isRevoked: () => true,
    ...{ clock, ids: systemIds(clock), log: silentLog },
  })
  const attempted = () => attempts.splice(0)
  return { clock, failing, removals, attempted }
}

test('while removals fail, each round attempts one, at most once a minute in the end', async () => {
  const { clock, failing, removals, attempted } = setUp()
  const users = Array.from({ length: 100 }, (_, at) => `user-${at}`)
  for (const user of users) failing.add(user)
  await removals.remove(users.map(owner))
  assert.equal(attempted().length, 1)
  await clock.advance(10 * MINUTE_MS)
  attempted()
  await clock.advance(10 * MINUTE_MS)
  const count = attempted().length
  assert.ok(count >= 9 && count <= 21, String(count))
  failing.clear()
  await clock.advance(MINUTE_MS)
  assert.equal(removals.pending, 0)
  assert.deepEqual(attempted().toSorted(), users.toSorted())
  await clock.advance(10 * MINUTE_MS)
  assert.deepEqual(attempted(), [])
})

test('an account whose removal always fails delays no other, and a new one is attempted at once', async () => {
  const { clock, failing, removals, attempted } = setUp()
  failing.add('lost')
  await removals.remove(['lost', 'ada', 'bob'].map(owner))
  await clock.advance(MINUTE_MS)
  assert.equal(removals.pending, 1)
  attempted()
  await removals.remove([owner('eve')])
  assert.deepEqual(attempted().slice(0, 1), ['eve'])
  assert.equal(removals.pending, 1)
})

test('after close nothing is attempted', async () => {
  const { clock, failing, removals, attempted } = setUp()
  failing.add('ada')
  await removals.remove([owner('ada')])
  await removals.close()
  attempted()
  await clock.advance(10 * MINUTE_MS)
  assert.deepEqual(attempted(), [])
})
