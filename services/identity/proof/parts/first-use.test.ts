import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { memoryOnceSets } from '@plat/state'
import { context } from '../testing/suite.ts'
import { createFirstUse } from './first-use.ts'

test('a credential serves one session until its end, and is refused once the store is full', async () => {
  const clock = new TestClock()
  const sets = memoryOnceSets(clock)
  const firstUse = createFirstUse({ set: (name) => sets.set(name, 1), close: sets.close })
  const end = clock.now() + 60_000
  const claim = async (credential: string, session = 's1') =>
    (await firstUse.claim(credential, { ...context, session }, end))?.kind ?? null
  assert.equal(await claim('one'), null)
  assert.equal(await claim('one'), null)
  assert.equal(await claim('one', 's2'), 'failed')
  assert.equal(await claim('two'), 'unreachable')
})
