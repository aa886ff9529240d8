import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { rfc3339Micros, TestClock } from '@plat/core'
import { createMemoryJournal, type Journal, openFileJournal } from '@plat/state'
import { MemoryDisk } from '@plat/testkit/disk'
import { tempFolder } from '@plat/testkit/local'
import fc from 'fast-check'
import { decodeEvent, type Revocation, type RevocationEvent } from './format.ts'
import { StoredRevocations } from './stored-revocations.ts'

const folder = tempFolder()

function entry(id: string, clock: TestClock, forMs: number | null = null): Revocation {
  const createdAt = rfc3339Micros(clock.now())
  const expiresAt = forMs === null ? null : rfc3339Micros(clock.now() + forMs)
  return { id, target: { session: `default/assistant/${id}` }, mode: 'revoke', reason: '', createdAt, expiresAt }
}

async function opened(journal: Journal<RevocationEvent>, clock: TestClock, onRevoked = () => 0) {
  const faults: unknown[] = []
  const stored = new StoredRevocations({
    journal,
    clock,
    onRevoked,
    onLifted() {},
    onFault: (error) => faults.push(error),
  })
  await stored.open()
  return { stored, faults }
}

const ids = (stored: StoredRevocations, clock: TestClock) =>
  stored.list
    .inForce(clock.now())
    .map(({ id }) => id)
    .sort()

type Step =
  | { readonly do: 'add'; readonly forMs: number | null }
  | { readonly do: 'lift'; readonly nth: number }
  | { readonly do: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('add' as const), forMs: fc.option(fc.integer({ min: 1, max: 5_000 })) }),
  fc.record({ do: fc.constant('lift' as const), nth: fc.nat(12) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
)

test('with concurrent adds and lifts each entry is lifted once, and a restart restores the same list', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(step, { maxLength: 8 }), { maxLength: 6 }), async (batches) => {
      const clock = new TestClock()
      const journal = createMemoryJournal<RevocationEvent>(() => clock.now())
      const { stored } = await opened(journal, clock)
      const added: Revocation[] = []
      const lifted: string[] = []
      const take = async (one: Step) => {
        if (one.do === 'add') {
          const made = entry(`r${added.length}`, clock, one.forMs)
          added.push(made)
          await stored.add(made)
        } else if (one.do === 'lift') {
          const id = added[one.nth]?.id ?? 'missing'
          if (await stored.lift(id)) lifted.push(id)
        }
      }
      for (const batch of batches) {
        await Promise.all(batch.map(take))
        for (const one of batch) if (one.do === 'wait') await clock.advance(one.ms)
        stored.sweep()
      }
      assert.deepEqual(lifted, [...new Set(lifted)])
      const expected = added
        .filter(
          ({ id, expiresAt }) => !lifted.includes(id) && (expiresAt === null || Date.parse(expiresAt) > clock.now()),
        )
        .map(({ id }) => id)
        .sort()
      assert.deepEqual(ids(stored, clock), expected)
      assert.deepEqual(ids((await opened(journal, clock)).stored, clock), expected)
    }),
    { numRuns: 200 },
  )
})

test('add resolves with the number of ended calls when the entry is durable', async () => {
  const clock = new TestClock()
  const path = join(folder, 'durable.jsonl')
  const journal = await openFileJournal({ path, clock, decode: decodeEvent })
  const { stored } = await opened(journal, clock, () => 3)
  assert.deepEqual(await stored.add(entry('r1', clock)), { cut: 3, fault: null })
  assert.match(readFileSync(path, 'utf8'), /default\/assistant\/r1/)
  const parallel = await Promise.all(['r2', 'r3', 'r4'].map((id) => stored.add(entry(id, clock))))
  assert.deepEqual(
    parallel.map(({ cut }) => cut),
    [3, 3, 3],
  )
  stored.close()
  await journal.close()
})

test('exactly one of many concurrent lifts of an entry succeeds', async () => {
  const clock = new TestClock()
  const journal = await openFileJournal({ path: join(folder, 'lift.jsonl'), clock, decode: decodeEvent })
  const { stored } = await opened(journal, clock)
  await stored.add(entry('r1', clock))
  const answers = await Promise.all(Array.from({ length: 20 }, () => stored.lift('r1')))
  assert.deepEqual(
    answers.filter((lifted) => lifted),
    [true],
  )
  stored.close()
  await journal.close()
})

test('entries loaded at start are in force, but not reported as new', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<RevocationEvent>(() => clock.now())
  const { stored } = await opened(journal, clock)
  await stored.add(entry('old', clock))
  const notified: string[] = []
  const again = new StoredRevocations({
    journal,
    clock,
    onRevoked: ({ id }) => notified.push(id),
    onLifted() {},
    onFault: assert.ifError,
  })
  await again.open()
  assert.deepEqual(ids(again, clock), ['old'])
  await again.add(entry('new', clock))
  assert.deepEqual(notified, ['new'])
})

test('compaction removes expired and lifted entries from the journal and retains those in force', async () => {
  const clock = new TestClock()
  const path = join(folder, 'compact.jsonl')
  const journal = await openFileJournal({ path, clock, decode: decodeEvent })
  const { stored, faults } = await opened(journal, clock)
  await stored.add(entry('stays', clock))
  await Promise.all(Array.from({ length: 1_200 }, (_, n) => stored.add(entry(`short${n}`, clock, 1_000))))
  const before = readFileSync(path).length
  await clock.advance(1_000)
  stored.sweep()
  await stored.add(entry('late', clock))
  assert.ok(readFileSync(path).length < before / 100)
  assert.equal(await stored.lift('late'), true)
  assert.equal(await stored.lift('stays'), true)
  stored.close()
  await journal.close()
  const again = await openFileJournal({ path, clock, decode: decodeEvent })
  assert.deepEqual(ids((await opened(again, clock)).stored, clock), [])
  assert.deepEqual(faults, [])
  await again.close()
})

test('when the disk fails the error is reported, and the entry is in force all the same', async () => {
  const clock = new TestClock()
  // Opening, the first write and its sync succeed; the second write fails.
  const disk = new MemoryDisk(new Map(), [{ at: 3, kind: 'ENOSPC' }])
  const journal = await openFileJournal({ path: join(folder, 'broken.jsonl'), clock, decode: decodeEvent, files: disk })
  const cut: string[] = []
  const { stored } = await opened(journal, clock, () => cut.push('cut'))
  await stored.add(entry('kept', clock))
  const { cut: ended, fault } = await stored.add(entry('unkept', clock))
  assert.match(String(fault), /journal .*broken/)
  assert.equal(ended, 2)
  assert.deepEqual(ids(stored, clock), ['kept', 'unkept'])
  assert.equal(cut.length, 2)
  assert.equal(await stored.lift('unkept'), true)
  await assert.rejects(stored.lift('kept'), /cannot be written/)
  assert.deepEqual(ids(stored, clock), ['kept'])
})

test('a journal with an event of another version does not open', async () => {
  assert.throws(() => decodeEvent({ t: 'extended', until: 'tomorrow' }), /not known to this version/)
  assert.throws(() => decodeEvent({ t: 'revoked', revocation: { id: 'r', target: {}, createdAt: 'x' } }), /not known/)
})
