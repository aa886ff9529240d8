import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Journal, JournalEntry } from './journal.ts'
import { JournalFollower } from './journal-follower.ts'
import { createMemoryJournal } from './memory-journal.ts'

const onFault = (error: unknown) => assert.fail(String(error))

async function contentOf(journal: Journal<number>): Promise<(readonly [string, number])[]> {
  return await Array.fromAsync(journal.read(0), ({ key, event }) => [key, event] as const)
}

/** A sum per key, of the events of a journal. */
class Sums {
  readonly follower: JournalFollower<number>
  readonly sums = new Map<string, number>()
  readonly replayed: number[] = []

  constructor(journal: Journal<number>, options: { onApply?: () => void } = {}) {
    const apply = ({ key, event }: JournalEntry<number>) => {
      this.sums.set(key, (this.sums.get(key) ?? 0) + event)
      options.onApply?.()
    }
    const replay = (entry: JournalEntry<number>) => {
      this.replayed.push(entry.event)
      apply(entry)
    }
    const replace = (entries: readonly JournalEntry<number>[]) => {
      this.sums.clear()
      entries.forEach(apply)
    }
    this.follower = new JournalFollower({ journal, apply, replay, replace, onFault })
  }

  compact(): Promise<void> {
    return this.follower.compact(() => [...this.sums].map(([key, event]) => ({ key, version: 1, event })))
  }
}

test('entries of the start are replayed, later ones applied, and a compaction leaves the state of each key', async () => {
  const journal = createMemoryJournal<number>(() => 0)
  await journal.append('a', [1, 2])
  const sums = new Sums(journal)
  await sums.follower.open()
  await journal.append('b', [3])
  await journal.append('a', [4])
  assert.deepEqual([sums.replayed, [...sums.sums]], [[1, 2], [...Object.entries({ a: 7, b: 3 })]])
  assert.equal(sums.follower.events, 4)
  await sums.compact()
  assert.equal(sums.follower.events, 2)
  assert.deepEqual(await contentOf(journal), [...Object.entries({ a: 7, b: 3 })])
})

test('events that arrive during a compaction remain in the journal, and a second compaction at the same time does nothing', async () => {
  const memory = createMemoryJournal<number>(() => 0)
  const { promise: until, resolve } = Promise.withResolvers<void>()
  let compactions = 0
  const journal: Journal<number> = {
    health: 'ok',
    append: (...args) => memory.append(...args),
    read: (after) => memory.read(after),
    follow: (...args) => memory.follow(...args),
    async compact(upTo, snapshot) {
      compactions++
      await until
      await memory.compact(upTo, snapshot)
    },
  }
  const sums = new Sums(journal)
  await sums.follower.open()
  await journal.append('a', [1, 2])
  const compacting = sums.compact()
  await journal.append('a', [3])
  const second = sums.compact()
  resolve()
  await Promise.all([compacting, second])
  assert.equal(compactions, 1)
  assert.deepEqual(await contentOf(memory), [
    ['a', 3],
    ['a', 3],
  ])
  assert.equal(sums.follower.events, 2)
})

test('a projection that is incomplete is never written: not while the journal is read, nor while it is replaced', async () => {
  const written: unknown[] = []
  const entries = [1, 2, 3].map((event) => ({ seq: event, key: String(event), version: 1, event, at: 0 }))
  let replaced: (entries: readonly JournalEntry<number>[]) => void = () => assert.fail('not followed')
  const journal: Journal<number> = {
    health: 'ok',
    append: async () => 1,
    async *read() {
      yield* entries
    },
    async follow(_after, _apply, _signal, replace) {
      replaced = replace ?? replaced
    },
    async compact(upTo, snapshot) {
      written.push([upTo, snapshot.length])
    },
  }
  const sums = new Sums(journal, { onApply: () => void sums.compact() })
  await sums.follower.open()
  replaced(entries)
  assert.deepEqual(written, [])
  await sums.compact()
  assert.deepEqual(written, [[3, 3]])
})

test('a journal that fails to compact rejects, and is compacted by the next attempt', async () => {
  const memory = createMemoryJournal<number>(() => 0)
  let fails = true
  const journal: Journal<number> = {
    health: 'ok',
    append: (...args) => memory.append(...args),
    read: (after) => memory.read(after),
    follow: (...args) => memory.follow(...args),
    async compact(...args) {
      if (fails) throw new Error('no space')
      await memory.compact(...args)
    },
  }
  const sums = new Sums(journal)
  await sums.follower.open()
  await journal.append('a', [1, 2])
  await assert.rejects(sums.compact(), /no space/)
  assert.equal(sums.follower.events, 2)
  fails = false
  await sums.compact()
  assert.equal(sums.follower.events, 1)
})
