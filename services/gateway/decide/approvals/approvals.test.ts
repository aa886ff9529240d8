import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { createMemoryJournal } from '@plat/state'
import { isDenial } from '../../call/index.ts'
import type { ApprovalEvent } from './store/events.ts'
import { callOf, completed, refusedBefore } from './testing/call.ts'
import { held, no, setup, yes } from './testing/setup.ts'

const [{ max: AGENT_SHARE }, { max: SESSION_SHARE }] = poolTable.pending_approvals.shares

test('a call that policy allows passes synchronously and creates no approval', async () => {
  const here = await setup()
  assert.deepEqual(here.stage.admit(callOf({ action: 'allow' })), { approval: null })
  const denied = await here.stage.admit(callOf({ action: 'deny' }))
  assert.ok(isDenial(denied))
  assert.equal(here.approvals.list().length, 0)
})

test('a granted call passes once, in its second pass; the next identical call waits for a new approval', async () => {
  // Shows D3.approvals.approvalQuorum.default.
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  assert.equal(here.pending(), 1)
  assert.ok('approval' in (await here.approvals.decide(wait.approvalId, yes)))
  assert.equal(await wait.until, 'granted')
  assert.equal(here.pending(), 0)
  const use = { approvalId: wait.approvalId, by: ['ada'] }
  assert.deepEqual(await here.stage.admit(call.again()), { approval: use })
  assert.equal(here.approvals.get(wait.approvalId)?.state, 'used')
  const next = await held(here, callOf({}))
  assert.notEqual(next.approvalId, wait.approvalId)
})

test('after the caller left, the next identical call waits for the same approval', async () => {
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  call.leave('client')
  const second = await held(here, callOf({}))
  assert.equal(second.approvalId, wait.approvalId)
  assert.ok(here.events.includes('detached') && here.events.includes('attached'))
  await here.approvals.decide(wait.approvalId, yes)
  assert.equal(await second.until, 'granted')
})

test('approved after the caller left: the next identical call passes at once, a third waits', async () => {
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  call.leave('client')
  await here.approvals.decide(wait.approvalId, yes)
  const second = await here.stage.admit(callOf({}))
  assert.deepEqual(second, { approval: { approvalId: wait.approvalId, by: ['ada'] } })
  await held(here, callOf({}))
})

test('a grant releases the newest of identical waiting calls: callers of older ones may have given up', async () => {
  const here = await setup()
  const [first, second] = [await held(here, callOf({})), await held(here, callOf({}))]
  await here.approvals.decide(first.approvalId, yes)
  assert.equal(await second.until, 'granted')
  assert.notEqual(await first.until, 'granted')
})

test('concurrent identical calls share one approval; one grant releases one of them', async () => {
  const clock = new TestClock()
  const journal = createMemoryJournal<ApprovalEvent>(() => clock.now())
  const append = journal.append.bind(journal)
  // A slow disk, so that the other calls arrive while the question is written.
  journal.append = (...event) => new Promise((resolve) => setImmediate(() => resolve(append(...event))))
  const here = await setup(journal, clock)
  const waits = await Promise.all(Array.from({ length: 20 }, () => held(here, callOf({}))))
  assert.equal(new Set(waits.map((wait) => wait.approvalId)).size, 1)
  await here.approvals.decide(waits[0]?.approvalId ?? '', yes)
  const answers = await Promise.all(waits.map((wait) => wait.until))
  assert.equal(answers.filter((answer) => answer === 'granted').length, 1)
  assert.equal(answers.filter((answer) => answer !== 'granted' && answer.code === 'approval_stale').length, 19)
})

test('only one of many concurrent calls gets a grant', async () => {
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  call.leave('client')
  await here.approvals.decide(wait.approvalId, yes)
  const verdicts = await Promise.all(Array.from({ length: 20 }, () => here.stage.admit(callOf({}))))
  assert.equal(verdicts.filter((verdict) => 'approval' in verdict).length, 1)
  assert.equal(verdicts.filter((verdict) => 'until' in verdict).length, 19)
  assert.equal(here.events.filter((t) => t === 'used').length, 1)
})

test('a denial reaches the waiting call with its reason; a decision is final', async () => {
  const here = await setup()
  const wait = await held(here, callOf({}))
  await here.approvals.decide(wait.approvalId, no)
  const answer = await wait.until
  assert.ok(answer !== 'granted')
  assert.equal(answer.code, 'approval_denied')
  assert.match(answer.reason, /not today/)
  assert.deepEqual([answer.policy, answer.rule], ['default/p', 'ask'])
  assert.deepEqual(answer.data, { approvalId: wait.approvalId })
  assert.deepEqual(await here.approvals.decide(wait.approvalId, yes), { refused: 'decided' })
  assert.deepEqual(await here.approvals.decide('no such id', yes), { refused: 'unknown' })
})

test('of two concurrent decisions one counts', async () => {
  const here = await setup()
  const wait = await held(here, callOf({}))
  const both = await Promise.all([
    here.approvals.decide(wait.approvalId, yes),
    here.approvals.decide(wait.approvalId, no),
  ])
  assert.equal(both.filter((one) => 'approval' in one).length, 1)
  assert.equal(here.approvals.get(wait.approvalId)?.votes.length, 1)
})

test('an undecided call and an unused grant both expire', async () => {
  // Shows D3.approvals.approvalTimeoutSeconds and D3.limit.approvalLifetime.
  const here = await setup()
  const wait = await held(here, callOf({}))
  const left = callOf({ args: '{"name":"b"}' })
  const granted = await held(here, left)
  left.leave('client')
  await here.approvals.decide(granted.approvalId, yes)
  await here.clock.advance(299_000)
  assert.equal(here.approvals.get(wait.approvalId)?.state, 'pending')
  await here.clock.advance(2_000)
  const answer = await wait.until
  assert.equal(answer === 'granted' ? '' : answer.code, 'approval_expired')
  assert.deepEqual(
    here.approvals.list().map(({ state }) => state),
    ['expired', 'expired'],
  )
  assert.deepEqual(await here.approvals.decide(wait.approvalId, yes), { refused: 'decided' })
  await held(here, callOf({ args: '{"name":"b"}' }))
})

test('a released call is evaluated again: allow or the same rule passes, a changed rule is stale', async () => {
  const cases = [
    [{}, 'passes'],
    [{ action: 'allow' as const }, 'passes'],
    [{ rule: 'other' }, 'approval_stale'],
    [{ action: 'deny' as const }, 'policy_denied'],
    [{ args: '{"name":"other"}' }, 'approval_stale'],
  ] as const
  for (const [now, expected] of cases) {
    const here = await setup()
    const call = callOf({})
    const wait = await held(here, call)
    await here.approvals.decide(wait.approvalId, yes)
    const verdict = await here.stage.admit(call.again(now))
    assert.equal(isDenial(verdict) ? verdict.code : 'approval' in verdict ? 'passes' : 'held', expected)
    assert.equal(here.approvals.get(wait.approvalId)?.state, expected === 'passes' ? 'used' : 'approved')
  }
})

test('a grant whose call was not forwarded can be used again, a forwarded one cannot', async () => {
  const here = await setup()
  const call = callOf({})
  const wait = await held(here, call)
  await here.approvals.decide(wait.approvalId, yes)
  const verdict = await here.stage.admit(call.again())
  assert.ok('approval' in verdict)
  await here.stage.settle?.(call.with(verdict), refusedBefore)
  assert.equal(here.approvals.get(wait.approvalId)?.state, 'approved')
  const second = callOf({})
  const used = await here.stage.admit(second)
  assert.ok('approval' in used && used.approval?.approvalId === wait.approvalId)
  await here.stage.settle?.(second.with(used), completed)
  assert.equal(here.approvals.get(wait.approvalId)?.state, 'used')
})

test('arguments that differ only beyond 2^53, or as number and text, never share an approval', async () => {
  const here = await setup()
  const texts = ['9007199254740992', '9007199254740993', '"9007199254740993"', '9007199254740993.0', '1e400', '-0']
  const ids = new Set<string>()
  for (const text of texts) ids.add((await held(here, callOf({ args: `{"n":${text}}` }))).approvalId)
  assert.equal(ids.size, texts.length)
  const same = await held(here, callOf({ args: '{ "n" : 9007199254740993 }' }))
  assert.ok(ids.has(same.approvalId))
})

test('arguments without a canonical form are refused, and no approval is created', async () => {
  const here = await setup()
  const verdict = await here.stage.admit(callOf({ args: '{"name":"\\ud800"}' }))
  assert.ok(isDenial(verdict))
  assert.equal(verdict.code, 'invalid_request')
  assert.deepEqual(here.approvals.list(), [])
})

test('another session, agent, namespace, tenant, tool, server or rule never shares an approval', async () => {
  const here = await setup()
  const first = await held(here, callOf({}))
  const others = [
    { session: 's2' },
    { agent: 'b' },
    { namespace: 'n2' },
    { tenant: 't2' },
    { tool: 'other' },
    { key: 'default/other' },
    { rule: 'other' },
    { args: '{"name":"b"}' },
  ]
  const ids = new Set([first.approvalId])
  for (const other of others) ids.add((await held(here, callOf(other))).approvalId)
  assert.equal(ids.size, others.length + 1)
})

test('a message that names no tool is bound to method and parameters, not to its id and progress token', async () => {
  const here = await setup()
  const read = (id: number, uri: string) =>
    callOf({
      operation: 'mcp.get',
      method: 'resources/read',
      tool: null,
      args: JSON.stringify({
        jsonrpc: '2.0',
        id,
        method: 'resources/read',
        params: { uri, _meta: { progressToken: id } },
      }),
    })
  const first = await held(here, read(1, 'a'))
  assert.equal((await held(here, read(2, 'a'))).approvalId, first.approvalId)
  assert.notEqual((await held(here, read(3, 'b'))).approvalId, first.approvalId)
})

test('revocation cancels the pending approval; after token expiry the caller may come back', async () => {
  const here = await setup()
  const revoked = callOf({ args: '{"n":1}' })
  const one = await held(here, revoked)
  revoked.leave('revoked')
  const expired = callOf({ args: '{"n":2}', expiresAt: here.clock.now() })
  const two = await held(here, expired)
  expired.leave('revoked')
  await here.clock.advance(1)
  assert.equal(here.approvals.get(one.approvalId)?.state, 'cancelled')
  assert.equal(here.approvals.get(two.approvalId)?.state, 'pending')
  assert.equal(here.pending(), 1)
})

test('one session cannot fill the backlog: calls beyond its share get retryAfterMs', async () => {
  const here = await setup()
  const verdicts = await Promise.all(
    Array.from({ length: SESSION_SHARE + 5 }, (_, n) => here.stage.admit(callOf({ args: `{"n":${n}}` }))),
  )
  const full = verdicts.filter(isDenial)
  assert.deepEqual(new Set(full.map(({ code }) => code)), new Set(['backlog_full']))
  assert.equal(full.length, 5)
  assert.ok((full[0]?.retryAfterMs ?? 0) > 0)
  await held(here, callOf({ session: 's2' }))
})

test('an agent that opens many sessions cannot fill the backlog: another agent is served', async () => {
  const here = await setup()
  const sessions = AGENT_SHARE / SESSION_SHARE
  for (let s = 0; s < sessions; s++) {
    const calls = Array.from({ length: SESSION_SHARE }, (_, n) =>
      held(here, callOf({ session: `s${s}`, args: `{"n":${n}}` })),
    )
    await Promise.all(calls)
  }
  const full = await here.stage.admit(callOf({ session: 'one-more' }))
  assert.ok(isDenial(full) && full.code === 'backlog_full')
  await held(here, callOf({ agent: 'other', session: 's0' }))
})
