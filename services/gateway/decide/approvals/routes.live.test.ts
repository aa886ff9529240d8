import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { type Listener, listen } from '@plat/http'
import type { Ledgers, Rec, RecordWaiter } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { fileJournals, soleLeadership } from '@plat/state'
import { createAdmin, marksOf } from '../../admin/index.ts'
import { inNamespaces, tokenMode } from '../../testing/admin.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createApprovals } from './index.ts'
import type { Quorum } from './quorum/quorum.ts'
import { callOf } from './testing/call.ts'
import { isApprovalView, isGrantView } from './view.ts'

const TOKEN = 'a-token-of-the-test'
const closers: (() => Promise<unknown>)[] = []
after(async () => {
  for (const close of closers.reverse()) await close()
})

type Frame = typeof tokenMode
const ONE: Quorum = { minApprovers: 1, approverGroups: [] }

/** Ledgers that collect their records. */
function recordingLedgers(): { readonly ledgers: Ledgers; readonly records: Rec[] } {
  const records: Rec[] = []
  const head = { seq: 1, hash: '' }
  const append = async (rec: Rec) => {
    records.push(rec)
    return head
  }
  const enter = (rec: Rec, waiter: RecordWaiter) => {
    records.push(rec)
    waiter.durable(head)
  }
  const ledgers: Ledgers = { of: () => ({ append, enter, head: () => head, health: 'ok', close: async () => {} }) }
  return { ledgers, records }
}

async function served({
  devTokenApprovers,
  frame = tokenMode,
  quorum = ONE,
  maxBytes = 4096,
}: {
  readonly devTokenApprovers: boolean
  readonly frame?: Frame
  readonly quorum?: Quorum
  readonly maxBytes?: number
}) {
  const { ledgers, records } = recordingLedgers()
  const { metrics, of } = recordedMetrics()
  const parts = { ledgers, clock: systemClock, ids: systemIds(systemClock), log: silentLog }
  const approvals = await createApprovals({
    ...parts,
    redactAll: (args) => args,
    personOf: (user) => marksOf({ names: [user], subject: null }, {}),
    journals: fileJournals(systemClock),
    leadership: soleLeadership(() => {}),
    config: {
      approvalTimeoutSeconds: 300,
      approvalStorePath: '',
      approvalPreview: { mode: 'redacted', maxBytes, maxStoredBytes: 1000 },
      approvalQuorum: { default: quorum, rules: {} },
      adminAuth: { devTokenApprovers },
    },
    approvalRules: () => [],
    recorded: [],
    confirmer: null,
    metrics,
  })
  closers.push(() => approvals.close())
  const admin = createAdmin({ ...frame, env: { PLAT_ADMIN_TOKEN: TOKEN }, ledgers, log: silentLog })
  const listener: Listener = await listen({
    ...parts,
    address: '127.0.0.1:0',
    api: (app) => admin.mount(app, [approvals.routes]),
  })
  closers.push(() => listener.close())
  const ask = async (method: string, path: string, body?: object, token = TOKEN) => {
    const response = await fetch(`${listener.url}/v1/${path.startsWith('session-') ? '' : 'approvals'}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer: unknown = response.status === 204 ? {} : await response.json()
    assert.ok(typeof answer === 'object' && answer !== null)
    return { status: response.status, answer: Object.fromEntries(Object.entries(answer)) }
  }
  /** Pauses a call. Returns the id of its approval. */
  const hold = async (name: string, namespace = 'default'): Promise<string> => {
    const verdict = await approvals.stage.admit(callOf({ args: JSON.stringify({ name }), namespace }))
    assert.ok('until' in verdict)
    return verdict.approvalId
  }
  return { ask, hold, stage: approvals.stage, records, pending: of('plat_gateway_approvals_pending') }
}

const known = (name: string) => ({ names: [name], subject: { issuer: 'https://login.example', subject: name } })

test('approvals are listed newest first, by state and in the documented shape', async () => {
  const { ask, hold, pending } = await served({ devTokenApprovers: true })
  // Ids made in the same millisecond have a random order.
  const ids = [await hold('a'), await hold('b'), await hold('c')].toSorted()
  // Shows D3.metric.plat_gateway_approvals_pending.
  assert.equal(pending.at(-1), '3')
  const { answer } = await ask('GET', '?state=pending&limit=2')
  assert.ok(Array.isArray(answer.items))
  assert.deepEqual(
    answer.items.map((item) => item.id),
    [ids[2], ids[1]],
  )
  assert.ok(answer.items.every(isApprovalView))
  const rest = await ask('GET', `?state=pending&cursor=${answer.nextCursor}`)
  assert.equal(Array.isArray(rest.answer.items) && rest.answer.items.length, 1)
  assert.deepEqual((await ask('GET', '?session=another')).answer, { items: [], nextCursor: null })
  const { answer: one } = await ask('GET', `/${ids[0]}`)
  assert.ok(isApprovalView(one))
  assert.equal(one.state, 'pending')
  assert.deepEqual([one.server, one.tool, one.policy, one.rule], ['notes', 'delete_note', 'default/p', 'ask'])
  assert.partialDeepStrictEqual(one.preview, { mode: 'redacted', truncated: false })
  assert.match(one.preview?.text ?? '', /^\{"name":"[abc]"\}$/)
  const unvoted = { userConfirmation: null, needed: 1, given: 0, votes: [] }
  assert.deepEqual(one.quorum, { minApprovers: 1, approverGroups: [], ...unvoted })
  assert.match(one.expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.equal((await ask('GET', '/no-such-id')).status, 404)
})

test('a decision needs the token, counts once, and is recorded with its author and reason', async () => {
  // Shows D3.adminAuth.devTokenApprovers.
  const { ask, hold, records } = await served({ devTokenApprovers: true })
  const id = await hold('a')
  assert.equal((await ask('POST', `/${id}/approve`, {}, 'another token')).status, 401)
  const { status, answer } = await ask('POST', `/${id}/approve`, { reason: 'looks right' })
  assert.deepEqual([status, answer.state], [200, 'approved'])
  const again = await ask('POST', `/${id}/deny`, {})
  assert.deepEqual([again.status, again.answer.error], [409, 'conflict'])
  assert.equal((await ask('POST', '/no-such-id/deny', {})).status, 404)
  assert.equal((await ask('POST', `/${id}/approve`, { reason: 7 })).status, 400)
  assert.equal((await ask('POST', `/${id}/approve`, { force: true })).status, 400)
  assert.deepEqual(
    records.filter(({ kind }) => kind === 'approval').map(({ event, by, reason }) => [event, by, reason]),
    [
      ['created', undefined, undefined],
      ['granted', 'token:admin', 'looks right'],
    ],
  )
})

test('a truncated preview is approved only with the SHA-256 of the whole arguments, and denied without it', async () => {
  const { ask, hold } = await served({ devTokenApprovers: true, maxBytes: 10 })
  const id = await hold('a name beyond the preview')
  const { answer: details } = await ask('GET', `/${id}`)
  assert.deepEqual(details.preview, { mode: 'redacted', text: '{"name":"a', truncated: true })
  const other = hash('sha256', '{"name":"a', 'hex')
  for (const body of [{}, { argsSha256: other }]) {
    const { status, answer } = await ask('POST', `/${id}/approve`, body)
    assert.deepEqual([status, answer.error], [409, 'conflict'])
    assert.match(String(answer.message), /truncated .*argsSha256/)
  }
  assert.equal((await ask('POST', `/${id}/approve`, { argsSha256: 'x' })).status, 400)
  const argsSha256 = hash('sha256', JSON.stringify({ name: 'a name beyond the preview' }), 'hex')
  const { answer } = await ask('POST', `/${id}/approve`, { argsSha256, reason: 'read in the ticket' })
  assert.equal(answer.state, 'approved')
  assert.equal((await ask('POST', `/${await hold('another such name')}/deny`)).answer.state, 'denied')
})

test('whole arguments beyond a truncated preview are fetched by approvers of their namespace, and only by them', async () => {
  const frame = inNamespaces({ shop: { approver: ['user:ada'], viewer: ['user:eve'] } })
  const { ask, hold } = await served({ devTokenApprovers: false, frame, maxBytes: 12 })
  const id = await hold('a name beyond the preview', 'shop')
  const { answer: details } = await ask('GET', `/${id}`, undefined, 'ada')
  assert.ok(isApprovalView(details))
  assert.equal(details.wholeArguments, `/v1/approvals/${id}/arguments`)
  const text = JSON.stringify({ name: 'a name beyond the preview' })
  const { status, answer } = await ask('GET', `/${id}/arguments`, undefined, 'ada')
  assert.deepEqual([status, answer], [200, { id, argsSha256: hash('sha256', text, 'hex'), text }])
  assert.equal((await ask('GET', `/${id}/arguments`, undefined, 'eve')).status, 403)
  const ids = {
    short: await hold('a', 'shop'),
    long: await hold('x'.repeat(2000), 'shop'),
    other: await hold('b', 'bank'),
  }
  for (const other of [...Object.values(ids), 'no-such-id'])
    assert.equal((await ask('GET', `/${other}/arguments`, undefined, 'ada')).status, 404)
  const { answer: long } = await ask('GET', `/${ids.long}`, undefined, 'ada')
  assert.equal(long.wholeArguments, null)
})

test('without devTokenApprovers the static token cannot approve, but it can deny, without a body too', async () => {
  const { ask, hold } = await served({ devTokenApprovers: false })
  const id = await hold('a')
  const { status, answer } = await ask('POST', `/${id}/approve`, {})
  assert.deepEqual([status, answer.error], [403, 'forbidden'])
  assert.match(String(answer.message), /adminAuth\.devTokenApprovers/)
  assert.equal((await ask('GET', `/${id}`)).answer.state, 'pending')
  assert.equal((await ask('POST', `/${id}/deny`)).answer.state, 'denied')
})

test('a role in one namespace shows and decides its approvals; others are not found', async () => {
  const frame = inNamespaces({ shop: { approver: ['user:ada'] }, bank: { viewer: ['user:ada'] } })
  const { ask, hold } = await served({ devTokenApprovers: false, frame })
  const ids = { shop: await hold('a', 'shop'), bank: await hold('b', 'bank'), farm: await hold('c', 'farm') }
  const { answer } = await ask('GET', '', undefined, 'ada')
  assert.ok(Array.isArray(answer.items))
  assert.deepEqual(answer.items.map(({ id }) => id).toSorted(), [ids.shop, ids.bank].toSorted())
  const hidden = { error: 'not_found', message: 'there is no approval with this id' }
  for (const [id, seen, decided] of [
    [ids.shop, 200, 200],
    [ids.bank, 200, 403],
    [ids.farm, 404, 404],
    ['no-such-id', 404, 404],
  ] as const) {
    const read = await ask('GET', `/${id}`, undefined, 'ada')
    const verdict = await ask('POST', `/${id}/approve`, {}, 'ada')
    assert.deepEqual([read.status, verdict.status], [seen, decided], id)
    if (seen === 404) for (const { answer } of [read, verdict]) assert.partialDeepStrictEqual(answer, hidden)
  }
  assert.equal((await ask('GET', `/${ids.farm}`)).answer.state, 'pending')
})

test('two people of an approver group must approve, and the ledger records both', async () => {
  const frame = {
    ...inNamespaces({ default: { approver: ['user:ada', 'user:bob', 'user:eve', 'user:uma'] } }),
    people: {
      identify: (token: string) => ({ user: token, groups: token === 'eve' ? [] : ['leads'], known: known(token) }),
    },
  }
  const quorum = { minApprovers: 2, approverGroups: ['leads'] }
  const { ask, hold, records } = await served({ devTokenApprovers: true, frame, quorum })
  const id = await hold('a')
  const approve = async (token?: string) => {
    const { status, answer } = await ask('POST', `/${id}/approve`, {}, token)
    return `${status} ${answer.error ?? answer.state}`
  }
  assert.equal(await approve(), '403 forbidden', 'the static token is of no group')
  assert.equal(await approve('eve'), '403 forbidden')
  assert.equal(await approve('uma'), '403 forbidden', 'the user of the session')
  assert.equal(await approve('ada'), '200 pending')
  assert.equal(await approve('ada'), '409 conflict')
  const { answer } = await ask('GET', `/${id}`)
  assert.partialDeepStrictEqual(answer.quorum, { ...quorum, needed: 2, given: 1, votes: [{ by: 'user:ada' }] })
  assert.equal(await approve('bob'), '200 approved')
  assert.deepEqual(
    records.filter(({ kind }) => kind === 'approval').map(({ event, by }) => `${event} ${by ?? '-'}`),
    ['created -', 'vote user:ada', 'vote user:bob', 'granted user:bob'],
  )
})

test('approvers list and lift approvals for sessions in their namespaces, and no one else does', async () => {
  const roles = { approver: ['user:ada'], viewer: ['user:eve'] }
  const frame = inNamespaces({ shop: roles, bank: { approver: ['user:bob', 'user:eve'] } })
  const { ask, hold, stage, records } = await served({ devTokenApprovers: false, frame })
  const pass = async (name: string, namespace: string) => {
    const verdict = await stage.admit(callOf({ args: JSON.stringify({ name }), namespace }))
    return 'approval' in verdict ? (verdict.approval?.approvalId ?? null) : null
  }
  const id = await hold('a', 'shop')
  assert.equal((await ask('POST', `/${id}/deny`, { scope: 'session' }, 'ada')).status, 400)
  assert.equal((await ask('POST', `/${id}/approve`, { scope: 'day' }, 'ada')).status, 400)
  const { answer: approved } = await ask('POST', `/${id}/approve`, { scope: 'session' }, 'ada')
  assert.ok(isApprovalView(approved))
  assert.deepEqual([approved.isRepeatable, approved.quorum.votes[0]?.scope], [true, 'session'])
  assert.deepEqual((await ask('GET', 'session-approvals', undefined, 'ada')).answer.items, [], 'no call has passed')
  assert.equal(await pass('a', 'shop'), id)
  for (const person of ['ada', 'eve']) {
    const { answer } = await ask('GET', 'session-approvals?agent=a', undefined, person)
    assert.ok(Array.isArray(answer.items) && answer.items.every(isGrantView))
    assert.partialDeepStrictEqual(answer.items, [{ id, namespace: 'shop', tool: 'delete_note', by: ['user:ada'] }])
  }
  assert.deepEqual((await ask('GET', 'session-approvals', undefined, 'bob')).answer.items, [])
  assert.deepEqual((await ask('GET', 'session-approvals?session=other', undefined, 'ada')).answer.items, [])
  assert.equal(await pass('b', 'shop'), id)
  const lift = async (person: string) => (await ask('DELETE', `session-approvals/${id}`, undefined, person)).status
  assert.deepEqual([await lift('bob'), await lift('eve'), await lift('ada'), await lift('ada')], [404, 403, 204, 404])
  assert.equal(await pass('c', 'shop'), null)
  const of = records.filter(({ kind }) => kind === 'approval').map(({ event, by }) => `${event} ${by ?? '-'}`)
  assert.deepEqual(of.slice(1, 6), [
    ...['granted user:ada', 'used -', 'session_granted -', 'repeated user:ada', 'session_lifted user:ada'],
  ])
})
