import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createMemoryJournal } from '@plat/state'
import type { Approvals } from '../approvals.ts'
import type { ApprovalEvent } from '../store/events.ts'
import { callOf } from '../testing/call.ts'
import { held, setup } from '../testing/setup.ts'
import { Confirmations, type Confirmer } from './confirmations.ts'

type Polled = Awaited<ReturnType<Confirmer['poll']>>
type ConfirmationResult = Awaited<ReturnType<Confirmer['ask']>>

/** A provider that answers what the test says; the real one is met where the feature is tested. */
function provider(clock: TestClock) {
  const said: string[] = []
  const state: { ask: ConfirmationResult | null; poll: Polled } = { ask: null, poll: 'pending' }
  const confirmer: Confirmer = {
    fallback: 'approvers',
    async ask(user) {
      said.push(`ask ${user}`)
      return (
        state.ask ?? { requestId: `r${said.length}`, code: 'PLAT-A', until: clock.now() + 60_000, intervalMs: 5_000 }
      )
    },
    async poll({ requestId }) {
      said.push(`poll ${requestId}`)
      return state.poll
    },
  }
  return { confirmer, state, take: () => said.splice(0) }
}

const userAlone = { quorum: { default: { minApprovers: 0, approverGroups: [], userConfirmation: 'ciba' as const } } }

async function asking() {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const open = () => setup(journal, clock, { ...userAlone, asksUsers: true })
  const here = await open()
  const there = provider(clock)
  const follow = (approvals: Approvals, confirmer = there.confirmer) =>
    new Confirmations({ approvals, confirmer, clock, onFault: assert.ifError })
  const confirmations = follow(here.approvals)
  const wait = await held(here, callOf({}))
  const stateOf = () => here.approvals.get(wait.approvalId)
  return { ...here, ...there, clock, open, follow, confirmations, wait, stateOf }
}

test('the user is asked once, and polled no faster than the provider says; slow_down makes it slower', async () => {
  const { clock, take, state, wait } = await asking()
  await clock.advance(1_000)
  assert.deepEqual(take(), ['ask uma'])
  await clock.advance(4_000)
  assert.deepEqual(take(), [])
  state.poll = 'slow_down'
  await clock.advance(1_000)
  assert.deepEqual(take(), ['poll r1'])
  await clock.advance(9_000)
  assert.deepEqual(take(), [])
  state.poll = 'confirmed'
  await clock.advance(2_000)
  assert.deepEqual(take(), ['poll r1'])
  assert.equal(await wait.until, 'granted')
  await clock.advance(60_000)
  assert.deepEqual(take(), [])
})

test('after a restart the same question is followed, and no other is asked', async () => {
  const { clock, take, state, approvals, confirmations, open, follow, wait } = await asking()
  await clock.advance(1_000)
  assert.deepEqual(take(), ['ask uma'])
  confirmations.close()
  approvals.close()
  const next = await open()
  follow(next.approvals)
  state.poll = 'confirmed'
  await clock.advance(1_000)
  assert.deepEqual(take(), ['poll r1'])
  assert.equal(next.approvals.get(wait.approvalId)?.state, 'approved')
})

test('a provider that gives no answer is asked three times, and then approvers decide, one at least', async () => {
  const { clock, take, state, approvals, stateOf, wait } = await asking()
  state.ask = { kind: 'unavailable', why: 'away', again: true }
  await clock.advance(10_000)
  assert.deepEqual(take(), ['ask uma', 'ask uma', 'ask uma'])
  assert.deepEqual([stateOf()?.state, stateOf()?.confirmation?.state], ['pending', 'waived'])
  await approvals.decide(wait.approvalId, {
    by: 'user:ada',
    person: ['name:ada'],
    groups: [],
    verdict: 'approve',
    reason: '',
  })
  assert.equal(await wait.until, 'granted')
})

test('a user who was asked and says no, or nothing, has not agreed: no fallback', async () => {
  const cases = [
    [{ kind: 'notAgreed', why: 'the user did not confirm it', byUser: true }, 'user:uma'],
    [{ kind: 'notAgreed', why: 'the user did not answer in time', byUser: false }, 'ciba'],
  ] as const
  for (const [poll, by] of cases) {
    const { clock, state, stateOf, wait } = await asking()
    await clock.advance(1_000)
    state.poll = poll
    await clock.advance(6_000)
    assert.equal(stateOf()?.state, 'denied')
    assert.partialDeepStrictEqual(stateOf()?.votes, [{ by, verdict: 'deny', reason: poll.why }])
    const answer = await wait.until
    assert.equal(answer === 'granted' ? '' : answer.code, 'approval_denied')
  }
})

test('a provider that refuses the request without asking the user is no agreement either', async () => {
  const { clock, state, stateOf } = await asking()
  state.ask = { kind: 'notAgreed', why: 'the provider refused the request: invalid_client', byUser: false }
  await clock.advance(2_000)
  assert.equal(stateOf()?.state, 'denied')
})

test('an answer that comes when nobody can decide any more counts for nothing', async () => {
  const { clock, state, stateOf, wait } = await asking()
  await clock.advance(1_000)
  state.poll = 'pending'
  await clock.advance(298_500)
  state.poll = 'confirmed'
  await clock.advance(10_000)
  assert.equal(stateOf()?.state, 'expired')
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_expired')
})
