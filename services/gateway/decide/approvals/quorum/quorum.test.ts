import assert from 'node:assert/strict'
import { test } from 'node:test'
import { marksOf, type PeopleTable } from '../../../admin/index.ts'
import type { ApprovalQuorumConfig } from '../config.ts'
import { callOf } from '../testing/call.ts'
import { held, no, setup, type TestCallOptions } from '../testing/setup.ts'
import type { Ballot } from './ballot.ts'
import { type ApprovalRule, QuorumFloor } from './quorum.ts'

const one = { minApprovers: 1, approverGroups: [] }
const of = (minApprovers: number, ...approverGroups: string[]) => ({ minApprovers, approverGroups })
const ISSUER = 'https://login.example'
/** A person authenticated by the admin API's identity provider. */
const yes = (by: string, ...groups: string[]): Ballot => ({
  by: `user:${by}`,
  person: marksOf({ names: [by], subject: { issuer: ISSUER, subject: by } }, {}),
  groups,
  verdict: 'approve',
  reason: '',
})
/** A person known by name only, as in a chat. */
const named = (by: string, people: PeopleTable = {}): Ballot => ({
  ...yes(by),
  person: marksOf({ names: [by], subject: null }, people),
  via: 'notifier/chat',
})

/** Creates an approval with this quorum. */
async function setupApproval(quorum: Partial<ApprovalQuorumConfig>, options: TestCallOptions = {}) {
  const here = await setup(null, undefined, { quorum, ...options })
  const call = callOf({})
  const wait = await held(here, call)
  const vote = async (ballot: Ballot) => {
    const decided = await here.approvals.decide(wait.approvalId, ballot)
    return 'refused' in decided ? decided.refused : decided.approval.state
  }
  return { ...here, call, wait, vote }
}

test('several distinct people must approve; each counts once, and the call waits for the last', async () => {
  // Shows D3.approvals.quorum.minApprovers, D3.limit.minApprovers.
  const { vote, wait, approvals, stage, call, events } = await setupApproval({ default: of(3) })
  assert.equal(await vote(yes('ada')), 'pending')
  assert.equal(await vote(yes('ada')), 'voted')
  assert.equal(await vote(yes('bob')), 'pending')
  assert.equal(await vote(yes('ada', 'another group')), 'voted')
  assert.equal(await vote(yes('eve')), 'approved')
  assert.equal(await wait.until, 'granted')
  const used = await stage.admit(call.again())
  assert.deepEqual(used, { approval: { approvalId: wait.approvalId, by: ['user:ada', 'user:bob', 'user:eve'] } })
  assert.equal(approvals.get(wait.approvalId)?.votes.length, 3)
  assert.deepEqual(events, ['created', 'vote', 'vote', 'vote', 'granted', 'used'])
})

test('a user cannot approve a call made for them, but can deny it', async () => {
  const { vote } = await setupApproval({})
  assert.equal(await vote(yes('uma')), 'self')
  assert.equal(await vote({ ...yes('uma'), verdict: 'deny' }), 'denied')
})

const people: PeopleTable = {
  uma: { issuer: ISSUER, subject: '00u-uma', aliases: ['uma@example.com'] },
  ada: { issuer: ISSUER, subject: '00u-ada', aliases: ['ada.l'] },
  bob: { issuer: ISSUER, subject: '00u-bob', aliases: [] },
}
const bySubject = (name: string, subject: string): Ballot => ({
  ...yes(name),
  person: marksOf({ names: [name], subject: { issuer: ISSUER, subject } }, people),
})

test('the user of a session cannot approve under any other name: another claim, an alias, a chat', async () => {
  for (const ballot of [
    yes('UMA'),
    bySubject('u.mayer', '00u-uma'),
    named('uma@example.com', people),
    {
      ...yes('u.mayer'),
      person: marksOf({ names: ['u.mayer', 'uma'], subject: { issuer: ISSUER, subject: '9' } }, {}),
    },
  ]) {
    const { vote } = await setupApproval({}, { people })
    assert.equal(await vote(ballot), 'self', JSON.stringify(ballot.person))
  }
})

test('a person who votes through two channels counts once', async () => {
  const { vote } = await setupApproval({ default: of(2) }, { people })
  assert.equal(await vote(named('ada', people)), 'pending')
  assert.equal(await vote(bySubject('a.lovelace', '00u-ada')), 'voted')
  assert.equal(await vote(named('ada.l', people)), 'voted')
  assert.equal(await vote(named('bob', people)), 'approved')
})

test('a voter known by name only fills a quorum of one and never counts beside another', async () => {
  const alone = await setupApproval({ default: of(1) })
  assert.equal(await alone.vote(named('ada')), 'approved')
  const { vote } = await setupApproval({ default: of(2) })
  assert.equal(await vote(named('ada')), 'pending')
  assert.equal(await vote(named('bob')), 'pending')
  assert.equal(await vote(yes('eve')), 'pending')
  assert.equal(await vote(yes('joe')), 'approved')
})

test('quorum and approvers are checked again at release; if they fail, an identical call starts a new approval', async () => {
  const ruleWith = (quorum: ApprovalRule['quorum']) => [{ policy: 'default/p', rule: 'ask', quorum }]
  const cases: readonly (readonly [ApprovalRule['quorum'], string])[] = [
    [null, 'passes'],
    [{ approverGroups: ['leads'] }, 'passes'],
    [{ minApprovers: 2 }, 'approval_stale'],
    [{ approverGroups: ['security'] }, 'approval_stale'],
  ]
  for (const [quorum, expected] of cases) {
    const now: { approvalRules?: readonly ApprovalRule[] } = {}
    const { vote, wait, stage, call, approvals } = await setupApproval({}, { now })
    assert.equal(await vote(yes('ada', 'leads')), 'approved')
    now.approvalRules = ruleWith(quorum)
    const verdict = await stage.admit(call.again())
    assert.equal('code' in verdict ? verdict.code : 'passes', expected, JSON.stringify(quorum))
    if (expected === 'passes') continue
    assert.equal(approvals.get(wait.approvalId)?.state, 'cancelled')
    const next = await stage.admit(callOf({}))
    assert.ok('until' in next && next.approvalId !== wait.approvalId)
  }
})

test('an approver who turns out to be the user of the session does not count at release', async () => {
  const known: Record<string, PeopleTable[string]> = {}
  const { vote, stage, call } = await setupApproval({}, { people: known })
  const person = marksOf({ names: ['u.mayer'], subject: { issuer: ISSUER, subject: '00u-uma' } }, {})
  assert.equal(await vote({ ...yes('u.mayer'), person }), 'approved')
  Object.assign(known, people)
  const verdict = await stage.admit(call.again())
  assert.equal('code' in verdict && verdict.code, 'approval_stale')
})

test('an approver whose later ballot lacks the group does not count at release or for a repeat', async () => {
  const here = await setupApproval({ default: of(1, 'leads') })
  assert.equal(await here.vote(yes('ada', 'leads')), 'approved')
  const other = await held(here, callOf({ args: '{"name":"other"}' }))
  assert.deepEqual(await here.approvals.decide(other.approvalId, yes('ada', 'staff')), { refused: 'group' })
  const verdict = await here.stage.admit(here.call.again())
  assert.equal('code' in verdict && verdict.code, 'approval_stale')
})

test('an approver outside the groups does not count, but can deny, which ends the approval', async () => {
  // Shows D3.approvals.quorum.approverGroups.
  const { vote, wait } = await setupApproval({ default: of(2, 'leads', 'security') })
  assert.equal(await vote(yes('ada')), 'group')
  assert.equal(await vote(yes('ada', 'staff')), 'group')
  assert.equal(await vote(yes('ada', 'staff', 'leads')), 'pending')
  assert.equal(await vote({ ...no, by: 'user:bob' }), 'denied')
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_denied')
  assert.equal(await vote(yes('eve', 'security')), 'decided')
})

test('an expired approval accepts no vote', async () => {
  const { vote, clock } = await setupApproval({ default: of(2) })
  assert.equal(await vote(yes('ada')), 'pending')
  await clock.advance(300_000)
  assert.equal(await vote(yes('bob')), 'decided')
})

test('concurrent votes are all counted', async () => {
  const { vote, approvals, wait, events } = await setupApproval({ default: of(5) })
  await Promise.all(['a', 'b', 'c', 'a', 'd', 'e'].map((name) => vote(yes(name))))
  const votes = approvals.get(wait.approvalId)?.votes.map(({ by }) => by) ?? []
  assert.deepEqual(votes.toSorted(), ['user:a', 'user:b', 'user:c', 'user:d', 'user:e'])
  assert.equal(events.filter((t) => t === 'granted').length, 1)
})

test('the most exact key of approvalQuorum.rules applies, and the default where none matches', () => {
  // Shows D3.approvals.approvalQuorum.rules.
  const floor = new QuorumFloor({
    default: of(9),
    rules: {
      '*/delete': of(4),
      'ops/*': of(3),
      'ops/delete': of(2),
      'ops/del*': of(5),
      'bank/ops/delete': of(7),
      '*/wire*': of(6),
    },
  })
  const needs = (policy: string | null, rule: string | null) => {
    const quorum = floor.over([{ policy, rule, quorum: null }])
    return typeof quorum === 'string' ? quorum : quorum.minApprovers
  }
  assert.equal(needs('shop/ops', 'delete'), 2)
  assert.equal(needs('bank/ops', 'delete'), 7)
  assert.equal(needs('shop/ops', 'delta'), 5)
  assert.equal(needs('shop/ops', 'read'), 3)
  assert.equal(needs('shop/dev', 'delete'), 4)
  assert.equal(needs('shop/dev', 'wire-out'), 6)
  assert.equal(needs('shop/dev', 'read'), 9)
  assert.equal(needs(null, null), 9)
})

test('policy rules can only raise the quorum: most approvers, shared groups, user confirmation', () => {
  const over = (floor: ApprovalQuorumConfig['default'], ...quorums: (ApprovalRule['quorum'] | null)[]) =>
    new QuorumFloor({ default: floor, rules: {} }).over(
      quorums.map((quorum) => ({ policy: 'default/p', rule: 'r', quorum })),
    )
  assert.deepEqual(over(of(2), { minApprovers: 1 }), of(2))
  assert.deepEqual(over(of(1), { minApprovers: 3 }, null, { minApprovers: 2 }), of(3))
  assert.deepEqual(over(of(1, 'a', 'b'), {}), of(1, 'a', 'b'))
  assert.deepEqual(over(of(1), { approverGroups: ['b'] }), of(1, 'b'))
  assert.deepEqual(over(of(1, 'a', 'b'), { approverGroups: ['b', 'c'] }), of(1, 'b'))
  assert.match(String(over(of(1, 'a'), { approverGroups: ['c'] })), /no group in common/)
  assert.deepEqual(over(one, { minApprovers: 0, userConfirmation: 'ciba' }), { ...one, userConfirmation: 'ciba' })
  assert.deepEqual(over({ ...of(0), userConfirmation: 'ciba' }, { minApprovers: 0 }), {
    ...of(0),
    userConfirmation: 'ciba',
  })
})

test('a call that no one could approve is denied at once', async () => {
  const ruleWith = (quorum: ApprovalRule['quorum']) => [{ policy: 'default/p', rule: 'ask', quorum }]
  const cases: readonly (readonly [TestCallOptions, RegExp])[] = [
    [{ approvalRules: ruleWith({ approverGroups: ['b'] }), quorum: { default: of(1, 'a') } }, /no group in common/],
    [{ approvalRules: ruleWith({ userConfirmation: 'ciba' }) }, /ciba\.enabled/],
  ]
  for (const [options, reason] of cases) {
    const here = await setup(null, undefined, options)
    const verdict = await here.stage.admit(callOf({}))
    assert.ok('code' in verdict && verdict.code === 'policy_denied')
    assert.match(verdict.reason, reason)
    assert.equal(here.approvals.list().length, 0)
  }
})
