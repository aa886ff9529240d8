import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SharedPool, TestClock } from '@plat/core'
import { oncePromises } from './once.conformance.ts'
import { memoryOnceSets } from './once.ts'

oncePromises({
  name: 'sets in memory',
  open: async (clock) => {
    const sets = memoryOnceSets(clock)
    // One process is one replica: both use the same set.
    const byName = new Map<string, ReturnType<typeof sets.set>>()
    const same = {
      set(name: string, cap: number | SharedPool) {
        const set = byName.get(name) ?? sets.set(name, cap)
        byName.set(name, set)
        return set
      },
      close: () => sets.close(),
    }
    return [same, same]
  },
})

test('a set in memory that is full refuses until an entry has expired', async () => {
  const clock = new TestClock()
  const set = memoryOnceSets(clock).set('small', 2)
  assert.equal(await set.insert('a', '', clock.now() + 1000), 'inserted')
  assert.equal(await set.insert('b', '', clock.now() + 2000), 'inserted')
  assert.equal(await set.insert('c', '', clock.now() + 1000), 'full')
  await clock.advance(1000)
  assert.equal(await set.insert('c', '', clock.now() + 1000), 'inserted')
})
