import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryJournal } from '@plat/state'
import { marksOf } from '../../../admin/index.ts'
import { isDenial } from '../../../call/index.ts'
import { callOf, refusedBefore, type TestCallFacts } from '../testing/call.ts'
import { held, no, type Setup, setup, type TestCallOptions, yes } from '../testing/setup.ts'
import type { GrantEvent } from './events.ts'
import { SESSION_GRANT_MS } from './repeats.ts'

const forSession = { ...yes, scope: 'session' } as const

/** Approves a first call for its session, and lets it pass. */
async function approved(facts: TestCallFacts = {}, options: TestCallOptions = {}) {
  const here = await setup(null, undefined, options)
  const call = callOf({ args: '{"name":"first"}', ...facts })
  const { approvalId: id, until } = await held(here, call)
  const decided = await here.approvals.decide(id, forSession)
  assert.ok('approval' in decided, JSON.stringify(decided))
  assert.equal(await until, 'granted')
  const verdict = await here.stage.admit(call.again())
  return { ...here, id, call, verdict }
}

/** Returns the approval that a call used, `waits`, or the code of its refusal. */
async function outcomeOf({ stage }: Setup, facts: TestCallFacts): Promise<string> {
  const verdict = await stage.admit(callOf(facts))
  if ('until' in verdict) return 'waits'
  if (isDenial(verdict)) return verdict.code
  assert.ok('approval' in verdict)
  return verdict.approval?.approvalId ?? 'free'
}

/** Marks of a person with a verified token. */
function linked(name: string) {
  return marksOf({ names: [name], subject: { issuer: 'https://login.example', subject: name } }, {})
}

const other = { args: '{"name":"second"}' }

test('after an approval for the session, calls of the tool pass with other arguments, each with a record', async () => {
  const here = await approved()
  assert.equal(await outcomeOf(here, other), here.id)
  assert.equal(await outcomeOf(here, { args: '{"name":"third"}' }), here.id)
  assert.deepEqual(
    here.records.map(({ event, approval, by }) => `${event} ${approval === here.id} ${by ?? '-'}`),
    ['session_granted true -', 'repeated true ada', 'repeated true ada'],
  )
  const [, repeated] = here.records
  assert.ok(repeated?.call !== undefined && repeated.argsSha256 !== undefined)
  assert.equal(repeated.policyRevision, 'sha256:r')
})

test('an approval for one call lets nothing else pass', async () => {
  const here = await setup()
  const call = callOf({})
  const { approvalId } = await held(here, call)
  await here.approvals.decide(approvalId, yes)
  await here.stage.admit(call.again())
  assert.equal(await outcomeOf(here, other), 'waits')
})

test('an approval for a session covers no other session, agent, namespace, user, server, tool, rule or definition', async () => {
  const here = await approved()
  const pin = { digest: 'sha256:d', mode: 'enforce', approve: false } as const
  const others: readonly TestCallFacts[] = [
    { session: 's2' },
    { agent: 'b' },
    { namespace: 'shop' },
    { tenant: 'acme' },
    { user: 'ada' },
    { issuer: 'https://other.example' },
    { key: 'default/other' },
    { tool: 'delete_all' },
    { rule: 'two people' },
    { method: 'resources/read', operation: 'mcp.get', tool: null },
    { pin },
  ]
  for (const facts of others)
    assert.equal(await outcomeOf(here, { ...other, ...facts }), 'waits', JSON.stringify(facts))
  const pinned = await approved({ pin })
  assert.equal(await outcomeOf(pinned, { ...other, pin }), pinned.id)
  assert.equal(await outcomeOf(pinned, { args: '{"name":"third"}', pin: { ...pin, approve: true } }), 'waits')
  assert.equal(await outcomeOf(here, { ...other, action: 'deny' }), 'policy_denied')
  assert.equal(await outcomeOf(here, { ...other, action: 'allow' }), 'free')
  assert.equal(await outcomeOf(here, other), here.id)
})

test('a label that the session did not have when it was approved needs an approval again', async () => {
  const here = await approved({ labels: ['pii'] })
  assert.equal(await outcomeOf(here, { ...other, labels: ['pii'] }), here.id)
  assert.equal(await outcomeOf(here, { ...other, labels: [] }), here.id)
  assert.equal(await outcomeOf(here, { ...other, labels: ['pii', 'untrusted-input'] }), 'waits')
})

test('labels that the session got while the approvers decided are not covered', async () => {
  const here = await setup()
  const { approvalId } = await held(here, callOf({}))
  await here.approvals.decide(approvalId, forSession)
  assert.equal(await outcomeOf(here, { labels: ['untrusted-input'] }), approvalId, 'the approved call itself')
  assert.equal(await outcomeOf(here, { ...other, labels: ['untrusted-input'] }), 'waits')
  assert.equal(await outcomeOf(here, { args: '{"name":"third"}' }), approvalId)
})

test('an approval for a session lets nothing pass for which a further rule requires an approval', async () => {
  const rule = (name: string) => ({ policy: 'default/p', rule: name, quorum: null })
  const now = { approvalRules: [rule('ask')] }
  const here = await approved({}, { now })
  assert.equal(await outcomeOf(here, other), here.id)
  now.approvalRules = [rule('ask'), rule('more')]
  assert.equal(await outcomeOf(here, other), 'waits')
})

test('an approval for a session lets nothing pass while those who gave it may not approve, as at an edge without connection', async () => {
  let isAllowed = true
  const here = await approved({}, { mayApprove: () => isAllowed })
  assert.equal(await outcomeOf(here, other), here.id)
  isAllowed = false
  assert.equal(await outcomeOf(here, other), 'waits')
})

test('an approval for a session that is lifted while its use is recorded does not let that call pass', async () => {
  let lift = async () => {}
  const recorded: TestCallOptions['recorded'] = ({ event }) => (event === 'repeated' ? lift() : Promise.resolve())
  const here = await approved({}, { recorded })
  lift = async () => assert.ok(await here.repeats.lift(here.id, 'user:bob'))
  assert.equal(await outcomeOf(here, other), 'waits')
})

test('a lifted approval for a session lets nothing pass, and neither does the approved call that came back', async () => {
  const here = await approved()
  assert.equal(await here.repeats.lift(here.id, 'user:bob'), true)
  assert.equal(await here.repeats.lift(here.id, 'user:bob'), false)
  assert.equal(await outcomeOf(here, other), 'waits')
  assert.ok('approval' in here.verdict)
  await here.stage.settle?.(here.call.with(here.verdict), refusedBefore)
  assert.equal(await outcomeOf(here, { args: '{"name":"first"}' }), here.id, 'its own approval is unused')
  assert.equal(await outcomeOf(here, { args: '{"name":"third"}' }), 'waits')
  assert.deepEqual([here.records.at(-1)?.event, here.records.at(-1)?.by], ['session_lifted', 'user:bob'])
})

test('it ends with its session, and after half a day', async () => {
  let hasEnded = false
  const here = await approved({}, { hasEnded: () => hasEnded })
  hasEnded = true
  assert.equal(await outcomeOf(here, other), 'waits')
  await here.repeats.sweep()
  hasEnded = false
  assert.equal(await outcomeOf(here, { args: '{"name":"third"}' }), 'waits')
  assert.deepEqual([here.grants.list().length, here.records.at(-1)?.event], [0, 'session_ended'])
  const old = await approved()
  await old.clock.advance(SESSION_GRANT_MS)
  assert.equal(await outcomeOf(old, other), 'waits')
})

test('everyone who approves must do so for the session, and one who did not makes it an approval of one call', async () => {
  const two = { default: { minApprovers: 2, approverGroups: [] } }
  const ballot = (name: string) => ({ ...yes, by: `user:${name}`, person: linked(name), groups: ['leads'] })
  for (const isForSession of [true, false]) {
    const here = await setup(null, undefined, { quorum: two })
    const call = callOf({})
    const { approvalId } = await held(here, call)
    await here.approvals.decide(approvalId, { ...ballot('ada'), scope: 'session' })
    await here.approvals.decide(approvalId, { ...ballot('bob'), ...(isForSession && { scope: 'session' }) })
    assert.equal(here.approvals.get(approvalId)?.state, 'approved')
    await here.stage.admit(call.again())
    assert.equal(await outcomeOf(here, other), isForSession ? approvalId : 'waits')
  }
})

test('a quorum that was raised, and a group that a voter left, end what the votes allow', async () => {
  const rule = (quorum: object) => [{ policy: 'default/p', rule: 'ask', quorum }]
  const now = { approvalRules: rule({ minApprovers: 1, approverGroups: ['leads'] }) }
  const here = await setup(null, undefined, { now })
  const ada = { ...forSession, person: linked('ada'), groups: ['leads'] }
  const call = callOf({})
  const { approvalId } = await held(here, call)
  await here.approvals.decide(approvalId, ada)
  await here.stage.admit(call.again())
  assert.equal(await outcomeOf(here, other), approvalId)
  now.approvalRules = rule({ minApprovers: 2, approverGroups: ['leads'] })
  assert.equal(await outcomeOf(here, { args: '{"name":"3"}' }), 'waits')
  now.approvalRules = rule({ minApprovers: 1, approverGroups: ['security'] })
  assert.equal(await outcomeOf(here, { args: '{"name":"4"}' }), 'waits')
})

test('the user of the session cannot approve it, and a call whose user confirms is approved for itself only', async () => {
  const here = await setup()
  const { approvalId } = await held(here, callOf({}))
  assert.deepEqual(await here.approvals.decide(approvalId, { ...forSession, by: 'uma', person: ['name:uma'] }), {
    refused: 'self',
  })
  const confirmed = await setup(null, undefined, {
    canPromptUsers: true,
    quorum: { default: { minApprovers: 1, approverGroups: [], userConfirmation: 'ciba' } },
  })
  const { approvalId: id } = await held(confirmed, callOf({}))
  assert.deepEqual(await confirmed.approvals.decide(id, forSession), { refused: 'once' })
})

test('a call that was denied learns of it, and a call that waits goes on waiting, though its tool is approved for the session', async () => {
  const here = await setup()
  const [first, second, third] = [callOf({}), callOf(other), callOf({ args: '{"name":"third"}' })]
  const { approvalId } = await held(here, first)
  await held(here, second)
  const denied = await held(here, third)
  third.leave('client')
  await here.approvals.decide(denied.approvalId, no)
  await here.approvals.decide(approvalId, forSession)
  await here.stage.admit(first.again())
  assert.equal(await outcomeOf(here, other), 'waits')
  assert.equal(await outcomeOf(here, { args: '{"name":"third"}' }), 'approval_denied')
  assert.equal(await outcomeOf(here, { args: '{"name":"fourth"}' }), approvalId)
})

test('a call that cannot be recorded does not pass', async () => {
  const here = await approved()
  here.records.push = () => {
    throw new Error('the disk is full')
  }
  assert.equal(await outcomeOf(here, other), 'state_unavailable')
})

test('approvals for sessions and their ends survive a restart and a compaction', async () => {
  const grantJournal = createMemoryJournal<GrantEvent>(() => 0)
  const here = await approved({}, { grantJournal })
  const again = await setup(null, here.clock, { grantJournal })
  assert.equal(await outcomeOf(again, other), here.id)
  assert.equal(await again.repeats.lift(here.id, 'user:bob'), true)
  assert.equal(await outcomeOf(here, other), 'waits', 'on another replica')
  const third = await setup(null, here.clock, { grantJournal })
  assert.equal(await outcomeOf(third, other), 'waits')
})
