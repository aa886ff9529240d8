import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal, type Journal, openFileJournal } from '@plat/state'
import { isDenial } from '../../call/index.ts'
import { type ApprovalEvent, decodeEvent } from './store/events.ts'
import { COMPACT_AFTER_EVENTS } from './store/log.ts'
import { ask, callOf } from './testing/call.ts'
import { held, no, setup, yes } from './testing/setup.ts'

test('calls are denied without a wait if the journal cannot be written', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const here = await setup(journal, clock)
  const wait = await held(here, callOf({}))
  journal.append = () => Promise.reject(new Error('the disk is gone'))
  const verdict = await here.stage.admit(callOf({ session: 's2' }))
  assert.ok(isDenial(verdict) && verdict.code === 'state_unavailable')
  await assert.rejects(here.approvals.decide(wait.approvalId, yes))
  await clock.advance(301_000)
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_expired')
})

/** A replica's delayed view of a shared journal: other replicas' events arrive later, its own before `append` resolves. */
function farFrom(journal: Journal<ApprovalEvent>, clock: TestClock): Journal<ApprovalEvent> {
  const later = () => new Promise<void>((resolve) => clock.after(10, resolve))
  return {
    health: 'ok',
    read: (after) => journal.read(after),
    compact: (...given) => journal.compact(...given),
    async append(...given) {
      const version = await journal.append(...given)
      await later()
      return version
    },
    follow: (after, apply, signal) => journal.follow(after, (entry) => clock.after(10, () => apply(entry)), signal),
  }
}

/** Advances the clock in small steps, so that a callback of one timer can set the next. */
async function pass(clock: TestClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    await clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('two replicas on one journal: each decides for both, and only one uses the grant', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const [one, two] = [await setup(journal, clock), await setup(farFrom(journal, clock), clock)]
  const call = callOf({})
  const wait = await held(one, call)
  await pass(clock, 100)
  const decided = two.approvals.decide(wait.approvalId, yes)
  await pass(clock, 100)
  assert.ok('approval' in (await decided))
  assert.equal(await wait.until, 'granted')
  const verdicts = Promise.all([one.stage.admit(call.again()), two.stage.admit(callOf({}))])
  await pass(clock, 100)
  assert.equal((await verdicts).filter((verdict) => 'approval' in verdict).length, 1)
  assert.equal([...one.events, ...two.events].filter((t) => t === 'used').length, 1)
})

test('identical calls at three replicas share one approval, nothing hangs, and one of them uses the grant', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const far = () => setup(farFrom(journal, clock), clock)
  const replicas = [await far(), await far(), await far()]
  for (let round = 0; round < 3; round++) {
    const admitted = Promise.all(replicas.flatMap((one) => Array.from({ length: 6 }, () => held(one, callOf({})))))
    await pass(clock, 1_000)
    const waits = await admitted
    assert.equal(new Set(waits.map(({ approvalId }) => approvalId)).size, 1)
    for (const one of replicas) assert.equal(one.pending(), 1)
    const decided = replicas[round]?.approvals.decide(waits[0]?.approvalId ?? '', yes)
    const answers = Promise.all(waits.map(({ until }) => until))
    await pass(clock, 1_000)
    assert.ok('approval' in ((await decided) ?? {}))
    const granted = (await answers).filter((answer) => answer === 'granted')
    assert.equal(granted.length, 3, 'each replica releases one call, and the journal lets one of them use the grant')
    const passed = Promise.all(replicas.map(({ stage }) => ask(stage, callOf({}))))
    await pass(clock, 100)
    await clock.advance(300_000)
    await pass(clock, 1_000)
    assert.equal((await passed).filter((answer) => answer === 'passed').length, 1)
    for (const one of replicas) assert.equal(one.pending(), 0)
  }
  const events = replicas.flatMap((one) => one.events)
  const count = (t: string) => events.filter((event) => event === t).length
  assert.deepEqual([count('created'), count('granted'), count('used')], [6, 3, 3])
})

test('a denial that no call learned of is reported once after a restart, also when the journal was compacted', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const before = await setup(journal, clock)
  const call = callOf({})
  const wait = await held(before, call)
  call.leave('client')
  assert.ok('approval' in (await before.approvals.decide(wait.approvalId, no)))
  before.approvals.close()
  const approval = before.approvals.get(wait.approvalId) ?? assert.fail()
  const compacted = createMemoryJournal<ApprovalEvent>(() => clock.now())
  await compacted.append(wait.approvalId, [{ t: 'snapshot', approval }])
  for (const stored of [journal, compacted]) {
    const after = await setup(stored, clock)
    const reported = await after.stage.admit(callOf({}))
    assert.ok(isDenial(reported) && reported.code === 'approval_denied')
    assert.match(reported.reason, /not today/)
    assert.notEqual((await held(after, callOf({}))).approvalId, wait.approvalId)
    after.approvals.close()
  }
})

test('a denial is not reported to another session, to a call with other arguments, or after its time', async () => {
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  call.leave('client')
  assert.ok('approval' in (await here.approvals.decide(wait.approvalId, no)))
  for (const other of [callOf({ session: 's2' }), callOf({ args: '{"name":"b"}' })]) {
    assert.notEqual((await held(here, other)).approvalId, wait.approvalId)
  }
  await here.clock.advance(301_000)
  assert.notEqual((await held(here, callOf({}))).approvalId, wait.approvalId)
})

test('a replica that no longer follows the journal refuses instead of retrying forever', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const one = await setup(journal, clock)
  const deaf = await setup({ ...farFrom(journal, clock), follow: async () => {} }, clock)
  const wait = await held(one, callOf({}))
  const verdict = deaf.stage.admit(callOf({}))
  await pass(clock, 5_000)
  assert.equal(isDenial(await verdict) && 'refused', 'refused')
  assert.equal(one.approvals.get(wait.approvalId)?.state, 'pending')
})

test('1,000 paused calls over a restart: none is lost, and no grant is used twice', async () => {
  // Shows D3.approvals.approvalStorePath.
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const clock = new TestClock()
  const open = () => openFileJournal({ path: join(dir, 'approvals.jsonl'), clock, decode: decodeEvent })
  const calls = Array.from({ length: 1000 }, (_, n) => () => callOf({ session: `s${n % 20}`, args: `{"n":${n}}` }))
  const first = await open()
  const before = await setup(first, clock)
  await Promise.all(calls.map((call) => held(before, call())))
  before.approvals.close()
  await first.close()

  const second = await open()
  const after = await setup(second, clock)
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
  const last = await setup(third, clock)
  assert.deepEqual(new Set(last.approvals.list().map(({ state }) => state)), new Set(['used']))
  for (const call of calls.slice(0, 20)) await held(last, call())
  last.approvals.close()
  await third.close()
  await rm(dir, { recursive: true })
})

test('a long journal is compacted without a change of state', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const here = await setup(journal, clock)
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
  assert.deepEqual((await setup(journal, clock)).approvals.list(), before)
})

test('finished approvals are removed after a day, and a journal with an unknown event is not opened', async () => {
  const here = await setup()
  const wait = await held(here, callOf({}))
  await here.approvals.decide(wait.approvalId, no)
  await here.clock.advance(60_000)
  assert.equal(here.approvals.list()[0]?.question.id, wait.approvalId)
  await here.clock.advance(24 * 3_600_000 + 300_000)
  assert.deepEqual(here.approvals.list(), [])
  for (const bad of [{ t: 'blessed' }, { t: 'granted', more: 1 }, {}, null, 'x']) assert.throws(() => decodeEvent(bad))
})

test('a vote of a newer version is read, with its voter known by name only', () => {
  const vote = { t: 'vote', by: 'uma', verdict: 'approve', reason: '', at: 1, via: 'notifier/chat' } as const
  const known = { ...vote, person: ['issuer|uma'], groups: ['ops'] }
  assert.deepEqual(decodeEvent(known), known)
  assert.deepEqual(decodeEvent({ ...known, device: 'phone' }), vote)
  for (const broken of [
    { ...known, verdict: 'maybe', device: 'x' },
    { ...known, by: 1, device: 'x' },
  ])
    assert.throws(() => decodeEvent(broken), /"vote" is not known to this version/)
})
