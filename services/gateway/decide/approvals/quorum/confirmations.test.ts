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
type ConfirmationResult = Awaited<ReturnType<Confirmer['prompt']>>

/** A scripted provider. The feature's own tests use a real one. */
function provider(clock: TestClock) {
  const requests: string[] = []
  const state: { prompt: ConfirmationResult | null; poll: Polled } = { prompt: null, poll: 'pending' }
  const confirmer: Confirmer = {
    fallback: 'approvers',
    async prompt(user) {
      requests.push(`prompt ${user}`)
      return (
        state.prompt ?? {
          requestId: `r${requests.length}`,
          code: 'PLAT-A',
          until: clock.now() + 60_000,
          intervalMs: 5_000,
        }
      )
    },
    async poll({ requestId }) {
      requests.push(`poll ${requestId}`)
      return state.poll
    },
  }
  return { confirmer, state, take: () => requests.splice(0) }
}

const userAlone = { quorum: { default: { minApprovers: 0, approverGroups: [], userConfirmation: 'ciba' as const } } }

async function setupConfirmation(previewBytes = 100) {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const open = () => setup(journal, clock, { ...userAlone, canPromptUsers: true, previewBytes })
  const here = await open()
  const there = provider(clock)
  const follow = (approvals: Approvals, confirmer = there.confirmer) =>
    new Confirmations({ approvals, confirmer, clock, onFault: assert.ifError })
  const confirmations = follow(here.approvals)
  const wait = await held(here, callOf({}))
  const stateOf = () => here.approvals.get(wait.approvalId)
  return { ...here, ...there, clock, open, follow, confirmations, wait, stateOf }
}

test('the user is prompted once and polled at the interval of the provider; slow_down lengthens it', async () => {
  const { clock, take, state, wait } = await setupConfirmation()
  await clock.advance(1_000)
  assert.deepEqual(take(), ['prompt uma'])
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

test('a restart resumes the same prompt and starts no other', async () => {
  const { clock, take, state, approvals, confirmations, open, follow, wait } = await setupConfirmation()
  await clock.advance(1_000)
  assert.deepEqual(take(), ['prompt uma'])
  confirmations.close()
  approvals.close()
  const next = await open()
  follow(next.approvals)
  state.poll = 'confirmed'
  await clock.advance(1_000)
  assert.deepEqual(take(), ['poll r1'])
  assert.equal(next.approvals.get(wait.approvalId)?.state, 'approved')
})

test('a user is not prompted about arguments that the approval does not show', async () => {
  const { clock, take, approvals, stateOf, wait } = await setupConfirmation(4)
  await clock.advance(2_000)
  assert.deepEqual([take(), stateOf()?.confirmation?.state], [[], 'waived'])
  const ballot = { by: 'user:ada', person: ['name:ada'], groups: [], verdict: 'approve', reason: '' } as const
  assert.deepEqual(await approvals.decide(wait.approvalId, ballot), { refused: 'unseen' })
  await approvals.decide(wait.approvalId, { ...ballot, argsSha256: stateOf()?.question.argsSha256 ?? '' })
  assert.equal(await wait.until, 'granted')
})

test('after three attempts without a response at least one approver decides', async () => {
  const { clock, take, state, approvals, stateOf, wait } = await setupConfirmation()
  state.prompt = { kind: 'unavailable', why: 'away', again: true }
  await clock.advance(10_000)
  assert.deepEqual(take(), ['prompt uma', 'prompt uma', 'prompt uma'])
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

test('there is no fallback after a user refused or did not respond', async () => {
  const cases = [
    [{ kind: 'notAgreed', why: 'the user did not confirm it', byUser: true }, 'user:uma'],
    [{ kind: 'notAgreed', why: 'the user did not answer in time', byUser: false }, 'ciba'],
  ] as const
  for (const [poll, by] of cases) {
    const { clock, state, stateOf, wait } = await setupConfirmation()
    await clock.advance(1_000)
    state.poll = poll
    await clock.advance(6_000)
    assert.equal(stateOf()?.state, 'denied')
    assert.partialDeepStrictEqual(stateOf()?.votes, [{ by, verdict: 'deny', reason: poll.why }])
    const answer = await wait.until
    assert.equal(answer === 'granted' ? '' : answer.code, 'approval_denied')
  }
})

test('there is no fallback when the provider refuses the request without prompting the user', async () => {
  const { clock, state, stateOf } = await setupConfirmation()
  state.prompt = { kind: 'notAgreed', why: 'the provider refused the request: invalid_client', byUser: false }
  await clock.advance(2_000)
  assert.equal(stateOf()?.state, 'denied')
})

test('a confirmation that arrives after the approval has ended does not count', async () => {
  const { clock, state, stateOf, wait } = await setupConfirmation()
  await clock.advance(1_000)
  state.poll = 'pending'
  await clock.advance(298_500)
  state.poll = 'confirmed'
  await clock.advance(10_000)
  assert.equal(stateOf()?.state, 'expired')
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_expired')
})
