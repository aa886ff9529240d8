import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { AdminRefusalError, GatewayUnreachableError } from '../shared/admin-api.ts'
import { type ApprovalView, previewText, secondsLeft } from './approvals.ts'
import { Cards, Lines, type Source } from './watch.ts'

function approval(id: string, more: Partial<ApprovalView> = {}): ApprovalView {
  return {
    id,
    state: 'pending',
    session: 's',
    namespace: 'default',
    agent: 'assistant',
    user: 'ada',
    server: 'notes',
    tool: 'delete_note',
    method: 'tools/call',
    policy: 'default/assistant',
    rule: 'delete',
    reason: 'somebody agrees',
    argsSha256: null,
    argsBytes: 12,
    preview: { mode: 'full', text: `{"name":"${id}"}`, truncated: false },
    quorum: { minApprovers: 1, approverGroups: [], userConfirmation: null, needed: 1, given: 0, votes: [] },
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: '2026-01-01T00:05:00Z',
    ...more,
  }
}

class Gateway implements Source {
  waiting: ApprovalView[] = []
  readonly decided: string[] = []
  fails: Error | null = null

  async list(): Promise<ApprovalView[]> {
    if (this.fails !== null) throw this.fails
    return this.waiting
  }

  async decide(id: string, { verdict, reason }: Parameters<Source['decide']>[1]): Promise<ApprovalView> {
    if (this.fails !== null) throw this.fails
    this.decided.push([verdict, id, reason].filter(Boolean).join(' '))
    this.waiting = this.waiting.filter((one) => one.id !== id)
    return approval(id, { state: verdict === 'approve' ? 'approved' : 'denied' })
  }

  async get(id: string): Promise<ApprovalView> {
    const vote = { verdict: 'deny' as const, by: 'eve', reason: 'too late', at: '2026-01-01T00:00:00Z', groups: [] }
    return approval(id, { state: 'denied', quorum: { ...approval(id).quorum, votes: [vote] } })
  }
}

/** A key, and Enter for no reason. */
async function press(cards: Cards, key: string): Promise<void> {
  await cards.press(key)
  await cards.press('\r')
}

function watching() {
  const clock = new TestClock()
  const gateway = new Gateway()
  const screen: string[] = []
  const cards = new Cards(gateway, { line: (text) => screen.push(text), clock })
  return { clock, gateway, screen, cards, seen: () => screen.splice(0).join('\n') }
}

test('a question that needs several says so, and leaves when this person has done its part', async () => {
  const { clock, gateway, cards, seen } = watching()
  const quorum = { ...approval('one').quorum, minApprovers: 2, approverGroups: ['leads'], needed: 2 }
  gateway.waiting = [approval('one', { quorum })]
  gateway.decide = async (id) => approval(id, { quorum: { ...quorum, given: 1 } })
  await cards.refresh()
  assert.match(seen(), /quorum +0 of 2 approvals of leads/)
  await clock.advance(1_000)
  await press(cards, 'a')
  assert.match(seen(), /approved by you; 1 of 2 approvals of leads/)
})

test('one question at a time, with everything one must know; one key decides it and shows the next', async () => {
  const { clock, gateway, cards, seen } = watching()
  gateway.waiting = [approval('one'), approval('two')]
  await cards.refresh()
  const lines = seen()
  for (const expected of [
    'default/assistant wants notes/delete_note',
    'ada',
    'default/assistant#delete: somebody agrees',
    '{"name":"one"}',
    '300 s left, 1 more waits',
  ])
    assert.ok(lines.includes(expected), expected)
  assert.ok(!lines.includes('"two"'))
  await clock.advance(1000)
  await press(cards, 'a')
  assert.match(seen(), /approved.*"two"/s)
  await clock.advance(1000)
  await press(cards, 'd')
  assert.deepEqual(gateway.decided, ['approve one', 'deny two'])
  await cards.refresh()
  assert.match(seen(), /no pending approvals/s)
})

test('a key that comes before the question could be read decides nothing', async () => {
  const { clock, gateway, cards } = watching()
  gateway.waiting = [approval('one')]
  await cards.refresh()
  await press(cards, 'a')
  assert.deepEqual(gateway.decided, [])
  await clock.advance(500)
  await cards.press('x')
  assert.deepEqual(gateway.decided, [])
  await press(cards, 'a')
  assert.deepEqual(gateway.decided, ['approve one'])
})

test('s skips, approvals decided elsewhere disappear, and q and Ctrl-C end', async () => {
  const { clock, gateway, cards, seen } = watching()
  gateway.waiting = [approval('one'), approval('two')]
  await cards.refresh()
  await clock.advance(1000)
  await cards.press('s')
  assert.match(seen(), /skipped.*"two"/s)
  gateway.waiting = [approval('one')]
  await cards.refresh()
  assert.match(seen(), /no longer waiting: denied; deny by eve \(too late\).*no pending approvals/s)
  assert.deepEqual(gateway.decided, [])
  assert.equal(await cards.press('q'), false)
  assert.equal(await cards.press('\u0003'), false)
})

test('the watch waits for an unreachable gateway; a refusal is shown and the next approval follows', async () => {
  const { clock, gateway, cards, seen } = watching()
  gateway.waiting = [approval('one')]
  gateway.fails = new GatewayUnreachableError('the gateway does not answer')
  await cards.refresh()
  assert.match(seen(), /does not answer \(still looking\)/)
  gateway.fails = null
  await cards.refresh()
  assert.match(seen(), /"one"/)
  await clock.advance(1000)
  gateway.fails = new AdminRefusalError('conflict', 'the gateway refused: it is denied already')
  await press(cards, 'a')
  assert.match(seen(), /it is denied already/)
  gateway.fails = new Error('a bug')
  await assert.rejects(cards.refresh(), /a bug/)
})

test('without a terminal each approval is one line, once, and an unreachable gateway is reported once', async () => {
  const gateway = new Gateway()
  const out: string[] = []
  const err: string[] = []
  const output = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const lines = new Lines(gateway, { output, format: 'table' })
  gateway.waiting = [approval('one')]
  await lines.refresh()
  await lines.refresh()
  assert.equal(out.length, 1)
  assert.match(out[0] ?? '', /^one {2}default\/assistant {2}ada {2}notes\/delete_note/)
  gateway.fails = new GatewayUnreachableError('away')
  await lines.refresh()
  await lines.refresh()
  assert.equal(err.length, 1)
  const json = new Lines(gateway, { output, format: 'json' })
  gateway.fails = null
  await json.refresh()
  assert.equal(JSON.parse(out[1] ?? '').id, 'one')
})

test('arguments are shown whole, and what is cut is not approved by a key', async () => {
  const { clock, gateway, cards, seen } = watching()
  const long = { mode: 'redacted', text: 'x'.repeat(60_000), truncated: false } as const
  gateway.waiting = [approval('one', { preview: long }), approval('two', { preview: { ...long, truncated: true } })]
  await cards.refresh()
  assert.ok(seen().includes(long.text))
  await clock.advance(1_000)
  await press(cards, 'a')
  assert.match(seen(), /approved.*\[cut: not all of 12 bytes are shown/s)
  await clock.advance(1_000)
  await press(cards, 'a')
  assert.match(seen(), /not approved: its arguments are cut; .*plat approvals approve two/)
  assert.deepEqual(gateway.decided, ['approve one'])
  await press(cards, 'd')
  assert.deepEqual(gateway.decided, ['approve one', 'deny two'])
})

test('text of an agent cannot move the cursor, reverse the text or hide behind a cut', () => {
  const hostile = approval('x', { preview: { mode: 'full', text: '\u001b[2J\u202eabc\r\n', truncated: true } })
  assert.equal(previewText(hostile, 100), '?[2J?abc??…')
  assert.equal(previewText(hostile, 4), '?[2…')
  assert.equal(previewText(approval('x', { preview: null }), 10), '12 bytes, not shown')
  assert.equal(secondsLeft(approval('x'), Date.UTC(2026, 0, 1, 0, 4, 59, 500)), 1)
  assert.equal(secondsLeft(approval('x'), Date.UTC(2026, 0, 1, 0, 6)), 0)
})

test('a decision has a reason, which Escape takes back', async () => {
  const { clock, gateway, cards, seen } = watching()
  gateway.waiting = [approval('one')]
  await cards.refresh()
  await clock.advance(1000)
  for (const key of ['a', 'n', 'o', '\u001b']) await cards.press(key)
  assert.deepEqual(gateway.decided, [])
  for (const key of ['d', 'q', 'x', '\u007f', 'uestion\u0007able']) await cards.press(key)
  assert.match(seen(), /deny, because \(Enter decides, Escape goes back\): question\?able/)
  await cards.press('\r')
  assert.deepEqual(gateway.decided, ['deny one question?able'])
})
