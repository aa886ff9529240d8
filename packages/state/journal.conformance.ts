import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Journal, JournalEntry } from './journal.ts'

/** Event written by the suite. */
export interface Sample {
  readonly t: 'sample'
  readonly n: number
}

/** A backend under test. `open` returns the journal of this test with its existing content; `close` releases it. */
export interface JournalBackend {
  readonly name: string
  open(): Promise<{ journal: Journal<Sample>; close(): Promise<void> }>
  /** Deletes everything that tests wrote. */
  reset(): Promise<void>
}

const sample = (n: number): Sample => ({ t: 'sample', n })

async function all(journal: Journal<Sample>, after = 0): Promise<JournalEntry<Sample>[]> {
  const found: JournalEntry<Sample>[] = []
  for await (const { seq, key, version, event } of journal.read(after)) found.push({ seq, key, version, event })
  return found
}

type Promised = (
  name: string,
  check: (journal: Journal<Sample>, again: () => Promise<Journal<Sample>>) => Promise<void>,
) => void

export function journalPromises(backend: JournalBackend): void {
  const promise: Promised = (name, check) => {
    test(`${backend.name}: ${name}`, async () => {
      await backend.reset()
      let current = await backend.open()
      await check(current.journal, async () => {
        await current.close()
        current = await backend.open()
        return current.journal
      })
      await current.close()
    })
  }
  appending(promise)
  reading(promise)
}

function appending(promise: Promised): void {
  promise('events are numbered in order, and each key counts its own', async (journal) => {
    assert.equal(await journal.append('a', [sample(1), sample(2)]), 2)
    assert.equal(await journal.append('b', [sample(3)]), 1)
    assert.equal(await journal.append('a', [sample(4)]), 3)
    const entries = await all(journal)
    assert.deepEqual(
      entries.map(({ seq, key, version, event }) => [seq, key, version, event.n]),
      [
        [1, 'a', 1, 1],
        [2, 'a', 2, 2],
        [3, 'b', 1, 3],
        [4, 'a', 3, 4],
      ],
    )
    assert.deepEqual(
      (await all(journal, 2)).map(({ seq }) => seq),
      [3, 4],
    )
  })

  promise('of many appends with the same expected version exactly one wins', async (journal) => {
    await journal.append('grant', [sample(0)])
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => journal.append('grant', [sample(n)], 1)))
    assert.equal(answers.filter((answer) => answer === 2).length, 1)
    assert.equal(answers.filter((answer) => answer === 'conflict').length, 99)
    assert.equal((await all(journal)).length, 2)
  })

  promise('a conflict resolves after followers received the earlier events', async (journal) => {
    const stop = new AbortController()
    const seen: number[] = []
    const following = journal.follow(0, ({ event }) => void seen.push(event.n), stop.signal)
    await journal.append('other', [sample(0)])
    const claim = async (n: number) => {
      if ((await journal.append('a', [sample(n)], 0)) === 'conflict') assert.equal(seen.length, 2)
    }
    await Promise.all([claim(1), claim(2), claim(3)])
    assert.equal(seen.length, 2)
    stop.abort()
    await following
  })

  promise('appended events and versions persist across reopening', async (journal, again) => {
    await journal.append('a', [sample(1), sample(2)])
    const reopened = await again()
    assert.equal((await all(reopened)).length, 2)
    assert.equal(await reopened.append('a', [sample(3)], 1), 'conflict')
    assert.equal(await reopened.append('a', [sample(3)], 2), 3)
    assert.equal((await all(reopened)).at(-1)?.seq, 3)
  })
}

function reading(promise: Promised): void {
  promise('a follower sees old and new events once, in order, until it is aborted', async (journal) => {
    await journal.append('a', [sample(1), sample(2)])
    const stop = new AbortController()
    const seen: number[] = []
    const enough = Promise.withResolvers<void>()
    const following = journal.follow(
      1,
      ({ event }) => {
        seen.push(event.n)
        if (seen.length === 3) enough.resolve()
      },
      stop.signal,
    )
    await journal.append('a', [sample(3)])
    await journal.append('b', [sample(4)])
    await enough.promise
    stop.abort()
    await following
    await journal.append('b', [sample(5)])
    assert.deepEqual(seen, [2, 3, 4])
  })

  promise('a snapshot replaces what it covers, and later events remain', async (journal, again) => {
    for (let n = 1; n <= 6; n++) await journal.append(n % 2 === 0 ? 'even' : 'odd', [sample(n)])
    await journal.compact(4, [{ key: 'even', version: 2, event: sample(40) }])
    const expected = [
      [4, 'even', 2, 40],
      [5, 'odd', 3, 5],
      [6, 'even', 3, 6],
    ]
    const shape = (entries: JournalEntry<Sample>[]) =>
      entries.map(({ seq, key, version, event }) => [seq, key, version, event.n])
    assert.deepEqual(shape(await all(journal)), expected)
    const reopened = await again()
    assert.deepEqual(shape(await all(reopened)), expected)
    assert.equal(await reopened.append('even', [sample(7)], 3), 4)
    assert.equal((await all(reopened)).at(-1)?.seq, 7)
  })
}
