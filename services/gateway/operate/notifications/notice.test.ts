import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { Rec } from '@plat/ledger'
import { REPOSITORY } from '../../reference.ts'
import { type ApprovalView, NOTICE_TYPES, noticeOf } from './notice.ts'

const AT = Date.UTC(2026, 0, 1)

const approval: ApprovalView = {
  id: 'a-1',
  session: 's',
  namespace: 'default',
  agent: 'assistant',
  user: 'uma',
  server: 'notes',
  tool: 'delete',
  method: 'tools/call',
  policy: 'default/p',
  rule: 'ask',
  reason: 'somebody looks first',
  argsBytes: 12,
  preview: null,
  quorum: {
    needed: 2,
    given: 1,
    approverGroups: ['leads'],
    votes: [{ by: 'user:ada', verdict: 'approve', reason: '' }],
  },
  expiresAt: '2026-01-01T00:05:00Z',
}

const noticeFor = (rec: Rec, view: ApprovalView | null = approval) => noticeOf(rec, () => view, AT)

test('each kind of approval record yields one notice, with the missing votes', () => {
  const types = (['created', 'granted', 'denied', 'expired', 'cancelled'] as const).map((event) => {
    const notice = noticeFor({ kind: 'approval', event, approval: 'a-1' })
    assert.equal(notice?.id, `a-1.${notice?.type}`)
    return notice.type
  })
  assert.deepEqual(types, NOTICE_TYPES.slice(0, 5))
  const facts = noticeFor({ kind: 'approval', event: 'created', approval: 'a-1' })?.facts
  assert.deepEqual(Object.fromEntries(facts ?? []), {
    agent: 'default/assistant',
    session: 's',
    user: 'uma',
    wants: 'notes/delete',
    rule: 'default/p#ask',
    why: 'somebody looks first',
    approvals: '1 of 2',
    'approver groups': 'leads',
    'decided by': 'user:ada (approve)',
    until: '2026-01-01T00:05:00Z',
  })
  assert.equal(noticeFor({ kind: 'approval', event: 'used', approval: 'a-1' }), null)
  assert.equal(noticeFor({ kind: 'approval', event: 'created', approval: 'gone' }, null), null)
})

test('budgets, pins and break-glass revocations yield notices, with the same id for the same event only', () => {
  const budget = { kind: 'alert', alert: 'budget.threshold', budget: 'b', key: 'k', window: 'd', percent: 80 } as const
  const spent = { spent: 8_000_000, cap: 10_000_000, unit: 'micros', currency: 'EUR' } as const
  const notice = noticeFor({ ...budget, ...spent })
  assert.deepEqual([notice?.type, notice?.title], ['budget.threshold', 'A budget is spent to 80 %: b'])
  assert.ok(notice?.facts.some(([name, value]) => name === 'spent' && value === '8 EUR'))
  assert.equal(noticeFor({ ...budget, ...spent, spent: 8_100_000 })?.id, notice?.id)
  assert.notEqual(noticeFor({ ...budget, ...spent, percent: 100 })?.id, notice?.id)
  const drift = noticeFor({ kind: 'alert', alert: 'pin.drift', server: 'default/notes', tool: 't', digest: 'sha256:x' })
  assert.equal(drift?.type, 'pin.drift')
  const revocation = {
    kind: 'revocation',
    source: 'breakglass',
    revocation: 'r',
    scope: 'agent',
    target: 'default/a',
  } as const
  const created = noticeFor({ ...revocation, action: 'revoke', by: 'user:ada' })
  const lifted = noticeFor({ ...revocation, action: 'lift', by: 'user:ada' })
  assert.deepEqual([created?.type, lifted?.type], ['revocation.created', 'revocation.lifted'])
  assert.notEqual(created?.id, lifted?.id)
  assert.equal(noticeFor({ kind: 'revocation', source: 'file', action: 'loaded' }), null)
  assert.equal(noticeFor({ kind: 'alert', alert: 'pin.accepted', server: 's', tool: 't' }), null)
  assert.equal(noticeFor({ kind: 'outcome' }), null)
})

test('texts of agents are cut to one line without control characters', () => {
  const evil = { ...approval, tool: `a\n\u202e${'x'.repeat(2_000)}\ud800`, reason: '\u0000<!channel>' }
  const notice = noticeFor({ kind: 'approval', event: 'created', approval: 'a-1' }, evil)
  for (const text of [notice?.title ?? '', ...(notice?.facts.map(([, value]) => value) ?? [])]) {
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u)
    assert.ok(text.isWellFormed() && text.length <= 600)
  }
})

test('arguments are whole in a notice, with invisible characters as escapes', () => {
  const text = `{"a":"${'x'.repeat(5_000)}\u202e\u0007"}`
  const notice = noticeFor(
    { kind: 'approval', event: 'created', approval: 'a-1' },
    { ...approval, preview: { text, truncated: false } },
  )
  assert.deepEqual(notice?.arguments, { text: `{"a":"${'x'.repeat(5_000)}\\u{202e}\\u{7}"}`, cut: false })
})

test('docs/approvals.md names every event', () => {
  const page = readFileSync(path.join(REPOSITORY, 'docs/approvals.md'), 'utf8')
  for (const type of NOTICE_TYPES) assert.ok(page.includes(`\`${type}\``), type)
})
