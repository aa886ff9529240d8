import assert from 'node:assert/strict'
import { appendFile, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { type PoolBound, poolTable, SharedPool, TestClock } from '@plat/core'
import { openFileJournal } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import fc from 'fast-check'
import { testIdentity } from '../../call/testing/identity.ts'
import { decodeMemoryEvent, type Written } from './events.ts'
import { Memory, type NoRoom, SPARE_MAX_BYTES } from './memory.ts'
import { type Owner, ownerKey, ownerOf } from './owner.ts'
import type { Store } from './stores.ts'

const OWNER: Owner = { tenant: '', namespace: 'default', store: 'notes', scope: 'agent', who: 'a' }

const written = (text: string, own: Partial<Written> = {}): Written => ({
  t: 'written',
  at: 0,
  keepUntil: 1000,
  text,
  taints: [],
  by: { agent: 'a', session: 's', person: null },
  ...own,
})

async function setUp(t: TestContext, total?: number, onRefused: (bound: PoolBound) => void = () => {}) {
  const file = path.join(tempFolder(), 'memory.jsonl')
  const clock = new TestClock()
  const faults: unknown[] = []
  const open = async () => {
    const journal = await openFileJournal({ path: file, clock, decode: decodeMemoryEvent })
    const pool = new SharedPool({ name: 'memory_bytes', onRefused, ...(total !== undefined && { total }) })
    const memory = await Memory.open({
      journal,
      onFault: (error) => void faults.push(error),
      pool,
    })
    const close = async () => {
      await memory.close()
      await journal.close()
    }
    t.after(close)
    return { memory, pool, close }
  }
  return { file, faults, open, ...(await open()) }
}

const write = (memory: Memory, key: string, text: string, maxItems = 10) =>
  memory.write(OWNER, { key, maxItems, written: written(text) })

test('items survive a restart, whatever a crash left in the file, and removed ones do not', async (t) => {
  const { memory, file, open, close } = await setUp(t)
  await write(memory, 'one', 'first')
  await write(memory, 'one', 'second')
  await write(memory, 'two', 'gone')
  await memory.remove(OWNER, 'two')
  await close()
  await appendFile(file, '{"half of a li')
  const again = await open()
  assert.deepEqual(
    again.memory.list(OWNER).map(({ key, text, version }) => [key, text, version]),
    [['one', 'second', 2]],
  )
  await write(again.memory, 'three', 'third')
  await again.close()
  assert.deepEqual((await open()).memory.list(OWNER).length, 2)
})

test('the number of items per owner is limited, also for concurrent writes, and items can be overwritten', async (t) => {
  const { memory } = await setUp(t)
  const all = await Promise.all(['a', 'b', 'c', 'd', 'a'].map((key) => write(memory, key, key, 3)))
  assert.deepEqual(all, [null, null, null, 'items', null])
  assert.equal(await write(memory, 'c', 'again', 3), null)
  await memory.remove(OWNER, 'a')
  assert.equal(await write(memory, 'd', 'now', 3), null)
  const other = { ...OWNER, who: 'b' }
  assert.equal(await memory.write(other, { key: 'a', maxItems: 3, written: written('') }), null)
})

test('the bytes of a gateway are limited, including pending writes', async (t) => {
  const { memory } = await setUp(t, 3000)
  const all = await Promise.all(['a', 'b', 'c'].map((key) => write(memory, key, 'x'.repeat(900))))
  assert.deepEqual(all, [null, null, 'bytes'])
  await memory.remove(OWNER, 'a')
  assert.equal(await write(memory, 'c', 'x'.repeat(900)), null)
})

test('an owner or namespace at its share of memory is refused, while others are served', async (t) => {
  const refused: string[] = []
  const { memory, pool } = await setUp(t, undefined, (bound) => refused.push(bound))
  const fill = async (owner: Owner, bytes: number): Promise<NoRoom | null> => {
    for (let n = 0; n * 1_000_000 < bytes; n++) {
      const no = await memory.write(owner, { key: `k${n}`, maxItems: 100, written: written('x'.repeat(1_000_000)) })
      if (no !== null) return no
    }
    return null
  }
  assert.equal(await fill(OWNER, poolTable.memory_bytes.shares[1].max + 1), 'bytes')
  for (const who of ['b', 'c', 'd']) await fill({ ...OWNER, who }, poolTable.memory_bytes.shares[1].max)
  assert.equal(await fill({ ...OWNER, who: 'e' }, 1_000_000), 'bytes')
  assert.equal(await fill({ ...OWNER, namespace: 'other' }, 1_000_000), null)
  assert.ok(refused.every((bound) => bound === 'share') && refused.length > 1)
  await memory.erase(() => true)
  assert.equal(pool.used, 0)
})

test('erased items are removed from every file, also after a restart', async (t) => {
  const { memory, file, open, close } = await setUp(t)
  const ada = { agent: 'a', session: 's', person: ' ada' }
  for (const [key, by] of Object.entries({ hers: ada, his: { ...ada, person: ' bob' } })) {
    await memory.write(OWNER, { key, maxItems: 10, written: written(`words of ${by.person}`, { by }) })
  }
  await memory.write(
    { ...OWNER, scope: 'user', who: ' ada' },
    { key: 'x', maxItems: 10, written: written('about ada') },
  )
  const count = await memory.erase(
    ({ scope, who }, { by }) => by.person === ' ada' || (scope === 'user' && who === ' ada'),
  )
  assert.equal(count, 2)
  const text = await readFile(file, 'utf8')
  assert.ok(text.includes('words of  bob') && !/ada|removed/.test(text), text)
  await close()
  const again = await open()
  assert.deepEqual(
    again.memory.list(OWNER).map(({ key }) => key),
    ['his'],
  )
})

test('a sweep removes expired items, in memory and in the file, and keeps the others', async (t) => {
  const { memory, file, open, close } = await setUp(t)
  await memory.write(OWNER, { key: 'old', maxItems: 10, written: written('very old words', { at: 1 }) })
  await memory.write(OWNER, { key: 'new', maxItems: 10, written: written('new words', { at: 9 }) })
  await memory.sweep((_, { at }) => at > 5)
  assert.deepEqual((await readFile(file, 'utf8')).includes('very old'), false)
  assert.equal(memory.get(OWNER, 'old'), null)
  const standing = memory.get(OWNER, 'new')
  await close()
  assert.deepEqual((await open()).memory.get(OWNER, 'new'), standing)
})

test('a journal with many overwritten items is compacted automatically', async (t) => {
  const { memory, file, faults } = await setUp(t)
  const text = 'x'.repeat(1_000_000)
  for (let n = 0; n < 20; n++) await write(memory, 'same', text)
  await until(async () => (await stat(file)).size < SPARE_MAX_BYTES / 2, 'a short file')
  assert.deepEqual([memory.get(OWNER, 'same')?.version, faults], [20, []])
  await write(memory, 'same', 'short')
  assert.equal(memory.get(OWNER, 'same')?.version, 21)
})

test('two callers share memory exactly if their store, and the members of its scope, are the same', () => {
  const segment = fc.constantFrom('a', 'b', 'a-b')
  const callers = fc.record({
    tenant: fc.constantFrom('', 't'),
    namespace: fc.constantFrom('default', 'other'),
    agent: segment,
    session: segment,
    user: fc.constantFrom('ada', 'b a', 'https://idp a', '["x"]'),
    issuer: fc.constantFrom('plat', 'https://idp', 'https://idp b'),
    scope: fc.constantFrom('agent', 'session', 'user'),
    store: fc.constantFrom('s', 's2'),
  })
  const trusted = new Set(['https://idp'])
  type Drawn = typeof callers extends fc.Arbitrary<infer T> ? T : never
  const keyOf = ({ scope, store, ...who }: Drawn) => {
    const limits = { retentionMs: 1, maxItems: 1, maxItemBytes: 1, dlpProfile: '', taints: [] }
    const one: Store = { namespace: who.namespace, name: store, scope, ...limits }
    const owner = ownerOf(one, { ...testIdentity, ...who, verified: 'idToken' }, trusted)
    return typeof owner === 'string' ? assert.fail(owner) : ownerKey(owner)
  }
  const words = ({ tenant, namespace, store, scope, agent, session, user, issuer }: Drawn) => {
    const external = issuer === 'https://idp'
    const who = { agent: [agent], session: [agent, session], user: [external, user] }[scope]
    return JSON.stringify([tenant, namespace, store, scope, who])
  }
  fc.assert(
    fc.property(callers, callers, (a, b) => assert.equal(keyOf(a) === keyOf(b), words(a) === words(b))),
    {
      numRuns: 2000,
    },
  )
})

test('a store of users is closed to callers without a verified user', () => {
  const store: Store = {
    ...{ namespace: 'default', name: 'people', scope: 'user', retentionMs: 1, maxItems: 1 },
    ...{ maxItemBytes: 1, dlpProfile: '', taints: [] },
  }
  const of = (own: object) => ownerOf(store, { ...testIdentity, ...own }, new Set(['https://idp']))
  assert.match(String(of({})), /acts for none/)
  assert.match(String(of({ user: 'ada' })), /is not verified/)
  assert.equal(typeof of({ user: 'ada', verified: 'requester' }), 'object')
  assert.equal(typeof of({ user: 'ada', issuer: 'https://idp' }), 'object')
})
