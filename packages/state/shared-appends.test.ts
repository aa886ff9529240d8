import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool } from '@plat/core'
import { createMemoryJournal, type Journals, PoolFullError, withShares } from './index.ts'

/** Journals in memory whose appends wait until they are released. */
function heldJournals() {
  const gate = Promise.withResolvers<void>()
  const journals: Journals = {
    shared: false,
    catchUp: null,
    async open<E>() {
      const journal = createMemoryJournal<E>(() => 0)
      const append = journal.append.bind(journal)
      journal.append = async (...given) => {
        await gate.promise
        return append(...given)
      }
      return journal
    },
  }
  return { journals, release: () => gate.resolve() }
}

const sessionIn = (key: string) => [key.split('/')[0] ?? '', key]

test('a session at its share of pending appends is refused while other sessions and journals are served', async () => {
  const refused: string[] = []
  const pool = new SharedPool({
    name: 'journal_appends',
    total: 6,
    shares: [3, 2],
    onRefused: (bound) => refused.push(bound),
  })
  const { journals, release } = heldJournals()
  const shared = withShares(journals, pool)
  const open = (name: string) => shared.open({ name, path: '', decode: () => 0, callerOf: sessionIn })
  const [taints, memory] = [await open('taints'), await open('memory')]
  const pending = [taints.append('a/1', [1]), taints.append('a/1', [2])]
  await assert.rejects(taints.append('a/1', [3]), PoolFullError)
  pending.push(taints.append('a/2', [4]))
  await assert.rejects(taints.append('a/3', [5]), /too many appends to a journal are pending, of this caller/)
  pending.push(taints.append('b/1', [6]), memory.append('a/1', [7]), memory.append('a/1', [8]))
  await assert.rejects(memory.append('c/1', [9]), /of all callers/)
  assert.deepEqual(refused, ['share', 'share', 'total'])
  release()
  assert.deepEqual(await Promise.all(pending), [1, 2, 1, 1, 1, 2])
  assert.equal(pool.used, 0)
  assert.equal(await taints.append('a/1', [10], 2), 3, 'refused appends wrote nothing')
})

test('an append that fails releases its place, and journals without callers are not counted', async () => {
  const pool = new SharedPool({ name: 'journal_appends', total: 1, shares: [1, 1] })
  const { journals, release } = heldJournals()
  const shared = withShares(journals, pool)
  const journal = await shared.open({ name: 'counted', path: '', decode: () => 0, callerOf: (key) => key })
  release()
  assert.equal(await journal.append('a', [1], 5), 'conflict')
  assert.equal(await journal.append('a', [1]), 1)
  assert.equal(pool.used, 0)
  const own = await shared.open({ name: 'own', path: '', decode: () => 0 })
  assert.deepEqual(await Promise.all([own.append('a', [1]), own.append('a', [2])]), [1, 2])
})
