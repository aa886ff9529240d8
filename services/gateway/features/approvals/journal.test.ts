import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal, openFileJournal } from '@plat/state'
import { isDenial } from '../../call/index.ts'
import { COMPACT_AFTER_EVENTS } from './approvals.ts'
import { type ApprovalEvent, decodeEvent } from './events.ts'
import { ask, callOf } from './testing/call.ts'
import { ground, held, no, yes } from './testing/ground.ts'

test('a journal that cannot be written denies, and lets nobody wait for ever', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const here = await ground(journal, clock)
  const wait = await held(here, callOf({}))
  journal.append = () => Promise.reject(new Error('the disk is gone'))
  const verdict = await here.stage.admit(callOf({ session: 's2' }))
  assert.ok(isDenial(verdict) && verdict.code === 'state_unavailable')
  await assert.rejects(here.approvals.decide(wait.approvalId, yes))
  await clock.advance(301_000)
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_expired')
})

test('two replicas on one journal: either decides for both, and a grant is used on one of them', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  // The second hears of everything a little later, as over a network.
  const far: typeof journal = Object.create(journal, {
    append: { value: journal.append.bind(journal) },
    read: { value: journal.read.bind(journal) },
    follow: {
      value: (...[after, apply, signal]: Parameters<typeof journal.follow>) =>
        journal.follow(after, (entry) => clock.after(10, () => apply(entry)), signal),
    },
  })
  const [one, two] = [await ground(journal, clock), await ground(far, clock)]
  const call = callOf({})
  const wait = await held(one, call)
  await clock.advance(10)
  await two.approvals.decide(wait.approvalId, yes)
  assert.equal(await wait.until, 'granted')
  const verdicts = Promise.all([one.stage.admit(call.again()), two.stage.admit(callOf({}))])
  await clock.advance(100)
  assert.equal((await verdicts).filter((verdict) => 'approval' in verdict).length, 1)
  assert.equal([...one.events, ...two.events].filter((t) => t === 'used').length, 1)
})

test('1,000 held calls over a restart: none is lost, and no grant is used twice', async () => {
  // Shows D3.approvals.approvalStorePath.
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const clock = new TestClock()
  const open = () => openFileJournal({ path: join(dir, 'approvals.jsonl'), clock, decode: decodeEvent })
  const calls = Array.from({ length: 1000 }, (_, n) => () => callOf({ session: `s${n % 20}`, args: `{"n":${n}}` }))
  const first = await open()
  const before = await ground(first, clock)
  await Promise.all(calls.map((call) => held(before, call())))
  before.approvals.close()
  await first.close()

  const second = await open()
  const after = await ground(second, clock)
  assert.equal(after.pending(), 1000)
  const ids = after.approvals.list().map(({ question }) => question.id)
  const [found] = await Promise.all([
    Promise.all(calls.slice(0, 500).map((call) => ask(after.stage, call()))),
    Promise.all(ids.map((id) => after.approvals.decide(id, yes))),
  ])
  const late = await Promise.all(calls.slice(500).map((call) => ask(after.stage, call())))
  assert.equal([...found, ...late].filter((answer) => answer === 'passed').length, 1000)
  assert.equal(after.events.filter((t) => t === 'used').length, 1000)
  after.approvals.close()
  await second.close()

  const third = await open()
  const last = await ground(third, clock)
  assert.deepEqual(new Set(last.approvals.list().map(({ state }) => state)), new Set(['used']))
  for (const call of calls.slice(0, 20)) await held(last, call())
  last.approvals.close()
  await third.close()
  await rm(dir, { recursive: true })
})

test('a journal that grew long is written anew, and says the same', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const here = await ground(journal, clock)
  const entries = () => Array.fromAsync(journal.read(0))
  const wait = await held(here, callOf({}))
  for (let n = 0; n < COMPACT_AFTER_EVENTS / 2; n++) {
    const call = callOf({})
    await held(here, call)
    call.leave('client')
    await new Promise((resolve) => setImmediate(resolve))
  }
  await here.approvals.decide(wait.approvalId, no)
  const before = here.approvals.list()
  await clock.advance(1_000)
  assert.equal((await entries()).length, 1)
  assert.deepEqual((await ground(journal, clock)).approvals.list(), before)
})

test('what is finished is forgotten after a day, and a journal with an unknown event is not opened', async () => {
  const here = await ground()
  const wait = await held(here, callOf({}))
  await here.approvals.decide(wait.approvalId, no)
  await here.clock.advance(60_000)
  assert.equal(here.approvals.list()[0]?.question.id, wait.approvalId)
  await here.clock.advance(24 * 3_600_000 + 300_000)
  assert.deepEqual(here.approvals.list(), [])
  for (const bad of [{ t: 'blessed' }, { t: 'granted', more: 1 }, {}, null, 'x']) assert.throws(() => decodeEvent(bad))
})
