import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal } from '@plat/state'
import { type Identity, isDenial } from '../../../call/index.ts'
import { testCall, testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { NOTHING_SEALED } from '../frames/seals.ts'
import type { McpRequest } from '../message.ts'
import { createSealer } from '../seal/seal.ts'
import { type CancelledTask, McpTasks } from './tasks.ts'

const TARGET = 'default/notes'
const HOUR_MS = 3_600_000

const request: McpRequest = {
  ...NOTHING_SEALED,
  ...{ kind: 'request', era: 'legacy', revision: '2025-11-25', method: 'tools/call', name: 'work', id: 1, bytes: null },
  ...{ session: { id: 'upstream-1', target: TARGET }, lastEvent: null, shared: null },
}

/** Replicas with one journal. */
async function setUp(t: TestContext) {
  const clock = new TestClock()
  const journal = createMemoryJournal<never>(() => clock.now())
  const sealer = createSealer([randomBytes(32)], clock, systemIds(clock))
  const records: Rec[] = []
  const ledger = {
    append: async (rec: Rec) => ({ seq: records.push(rec), hash: '' }),
    enter() {},
    head: () => ({ seq: 0, hash: '' }),
    health: 'ok' as const,
    close: async () => {},
  }
  const replica = async () => {
    // One journal serves all kinds of events here.
    const open = async () => Object.assign(journal, { close: async () => {} })
    const tasks = await McpTasks.open({
      ...{ clock, sealer, log: silentLog, config: { auditPath: '' }, ledgers: { of: () => ledger } },
      journals: { shared: true, catchUp: null, open },
    })
    t.after(() => tasks.close())
    return tasks
  }
  return { clock, records, replica }
}

const callOf = (identity: Identity) => testCall({ identity, target: { ...testTarget, key: TARGET, tool: 'work' } })

test('a task is known at every replica, with the session of the server in which it was created', async (t) => {
  const { replica } = await setUp(t)
  const [one, other] = [await replica(), await replica()]
  assert.equal(await one.bind(callOf(testIdentity), request, { id: 'a/b', state: 'working' }), null)
  const found = other.find(testIdentity, TARGET, 'a/b')
  assert.deepEqual(found?.task.tool, 'work')
  assert.equal(found && other.sessionOf(found, testIdentity)?.id, 'upstream-1')
  assert.equal(other.find({ ...testIdentity, session: 'other' }, TARGET, 'a/b'), null)
  assert.equal(other.find({ ...testIdentity, user: 'other' }, TARGET, 'a/b'), null)
  // Neither names of servers nor ids can be mistaken for each other.
  assert.equal(other.find(testIdentity, `${TARGET}/a`, 'b'), null)
  assert.equal(found && other.changes(found, 'completed'), true)
  const again = one.find(testIdentity, TARGET, 'a/b')
  assert.equal(again && one.changes(again, 'completed'), false)
})

test('a session at its share of tasks gets no more, while another session does; an ended task is forgotten after an hour', async (t) => {
  const { replica, clock } = await setUp(t)
  const tasks = await replica()
  const bind = (identity: Identity, id: string) => tasks.bind(callOf(identity), request, { id, state: 'completed' })
  for (let n = 0; n < 1000; n++) assert.equal(await bind(testIdentity, `t${n}`), null)
  const full = await bind(testIdentity, 'one more')
  assert.ok(isDenial(full) && full.code === 'rate_limited')
  assert.equal(await bind({ ...testIdentity, session: 'other' }, 'theirs'), null)
  await clock.advance(2 * HOUR_MS)
  assert.equal(await bind(testIdentity, 'one more'), null)
})

test('a task of a revoked owner is cancelled until its server responds, and recorded by one replica', async (t) => {
  const { replica, clock, records } = await setUp(t)
  const tasks = await Promise.all([replica(), replica()])
  const [one] = tasks
  const derived = { ...testIdentity, delegators: [{ namespace: 'default', agent: 'parent', session: 'p' }] }
  for (const id of ['open', 'ended']) await one?.bind(callOf(derived), request, { id, state: 'working' })
  const ended = one?.find(derived, TARGET, 'ended')
  if (ended) one?.changes(ended, 'completed')
  const requested: CancelledTask[] = []
  let isReachable = false
  let isRevoked = false
  const hasRevoked = ({ delegators }: Identity) => isRevoked && delegators.some(({ agent }) => agent === 'parent')
  const cuts: (() => void)[] = []
  for (const replica of tasks)
    replica.follow({ hasRevoked, followCuts: (notify) => cuts.push(notify) }, async (task) => {
      requested.push(task)
      return isReachable
    })
  assert.equal(requested.length, 0)
  isRevoked = true
  for (const cut of cuts) cut()
  await clock.advance(0)
  assert.deepEqual([requested.length > 0, records.length], [true, 0])
  isReachable = true
  await clock.advance(60_000)
  assert.ok(requested.every(({ id, session }) => id === 'open' && session?.id === 'upstream-1'))
  assert.deepEqual(
    records.map(({ kind, task }) => [kind, task]),
    [['message', { id: 'open', status: 'cancelled' }]],
  )
})
