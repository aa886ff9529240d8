import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { poolTable } from '@plat/core'
import { until } from '@plat/testkit/until'
import { gatewayWith } from '../../testing/approvals.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { TOKEN } from '../../testing/started.ts'
import { cookieOf, pageAt } from '../console/testing/page.ts'
import { type EventStream, readEvents } from './testing/reader.ts'

async function setUp(t: TestContext) {
  const people = await provider(t)
  const gateway = await gatewayWith(t, {
    adminAuth: {
      mode: 'both',
      devTokenApprovers: true,
      roles: { viewer: ['user:viewer'], auditor: ['user:auditor'] },
      namespaceRoles: { default: { viewer: ['user:here'] }, shop: { viewer: ['user:there'] } },
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
    },
  })
  const follow = async (user: string | null, more: Record<string, string> = {}) => {
    const token = user === null ? TOKEN : await people.token({ preferred_username: user })
    const stream = await readEvents(gateway.url, { authorization: `Bearer ${token}`, ...more })
    t.after(() => stream.close())
    return stream
  }
  return { ...gateway, follow }
}

test('approvals, sessions, revocations and refusals are reported as events when they happen', async (t) => {
  const { url, follow, hold, admin } = await setUp(t)
  const all = await follow(null)
  const { id, answer } = await hold()
  assert.partialDeepStrictEqual((await all.first('approval.created')).data, {
    approval: id,
    namespace: 'default',
    state: 'pending',
  })
  assert.equal((await admin('POST', `/v1/approvals/${id}/approve`, {})).status, 200)
  assert.equal((await all.first('approval.approved')).data.approval, id)
  await answer
  await all.first('approval.used')
  assert.equal((await all.first('session.started')).data.namespace, 'default')
  await until(() => all.events.some(({ type, data }) => type === 'calls.counted' && data.calls === 1), 'the count')
  const revoked = await admin('POST', '/v1/revocations', { target: { agent: 'default/other' } })
  assert.equal((await all.first('revocation.created')).data.id, revoked.body.id)
  const headers = { authorization: `Bearer ${TOKEN}` }
  const lifted = await fetch(`${url}/v1/revocations/${revoked.body.id}`, { method: 'DELETE', headers })
  assert.equal(lifted.status, 204)
  await all.first('revocation.lifted')
})

test('a session ends for readers with its revocation, whatever scope that has', async (t) => {
  const { follow, hold, admin } = await setUp(t)
  const all = await follow(null)
  const { id, answer } = await hold()
  await admin('POST', `/v1/approvals/${id}/approve`, {})
  await answer
  const { namespace, agent, session } = (await all.first('session.started')).data
  assert.equal((await admin('POST', '/v1/revocations', { target: { namespace } })).status, 201)
  const { at, ...ended } = (await all.first('session.ended')).data
  assert.deepEqual([ended, typeof at], [{ namespace, agent, session }, 'string'])
})

test('readers see events of their namespaces, and only auditors what was refused', async (t) => {
  const { follow, hold, admin } = await setUp(t)
  const [viewer, auditor, here, there, nowhere] = await Promise.all(
    ['viewer', 'auditor', 'here', 'there', 'stranger'].map((user) => follow(user)),
  )
  assert.ok(viewer && auditor && here && there && nowhere)
  assert.deepEqual([auditor.status, nowhere.status], [403, 403])
  const all = await follow(null)
  const { id } = await hold()
  for (const stream of [viewer, here]) assert.equal((await stream.first('approval.created')).data.approval, id)
  await admin('POST', '/v1/revocations', { target: { user: 'uma' } })
  await admin('POST', '/v1/revocations', { target: { namespace: 'shop' } })
  await there.first('revocation.created')
  assert.deepEqual(
    there.events.map(({ type }) => type).filter((type) => type !== 'calls.counted'),
    ['open', 'revocation.created'],
  )
  const [denied, seen] = await Promise.all([all.first('denial.created'), viewer.first('denial.created')])
  assert.deepEqual([denied.data.code, denied.data.tool], ['revoked', 'delete'])
  assert.deepEqual([seen.data.code, seen.data.tool, seen.data.agent], [undefined, undefined, denied.data.agent])
  assert.ok(!here.events.some(({ data }) => JSON.stringify(data).includes('uma')), 'of no single namespace')
})

test('readers of one namespace get counts of its calls only', async (t) => {
  const { follow, hold, admin } = await setUp(t)
  const [here, there] = await Promise.all([follow('here'), follow('there')])
  const { id, answer } = await hold()
  await admin('POST', `/v1/approvals/${id}/approve`, {})
  await answer
  await until(() => here.events.some(({ type }) => type === 'calls.counted'), 'the count')
  // Both get what one tick has counted, and this event after it.
  await admin('POST', '/v1/revocations', { target: { namespace: 'shop' } })
  await there.first('revocation.created')
  assert.ok(!there.events.some(({ type }) => type === 'calls.counted'))
})

test('a reader resumes after its last event, and starts over when that is not known', async (t) => {
  const { follow, admin } = await setUp(t)
  const revoke = (agent: string) => admin('POST', '/v1/revocations', { target: { agent } })
  const ids = ({ events }: EventStream) => events.map(({ data }) => Object(data.target).agent).filter(Boolean)
  const one = await follow(null)
  await revoke('default/a')
  const { id } = await one.first('revocation.created')
  one.close()
  await revoke('default/b')
  await revoke('default/c')
  const resumed = await follow(null, { 'last-event-id': id })
  await revoke('default/d')
  await until(() => ids(resumed).length === 3, 'the events')
  assert.deepEqual(ids(resumed), ['default/b', 'default/c', 'default/d'])
  for (const unknown of ['0197a000-0000-7000-8000-000000000000-1', 'nonsense']) {
    const anew = await follow(null, { 'last-event-id': unknown })
    assert.deepEqual((await anew.first('reset')).data, {})
    assert.deepEqual(ids(anew), [])
  }
})

test('a stream ends with the login, and a caller that opens its share of them leaves streams to others', async (t) => {
  const { url, follow } = await setUp(t)
  const page = pageAt(url)
  const { body } = await page('POST', '/v1/console/links', { headers: { authorization: `Bearer ${TOKEN}` } })
  const cookie = cookieOf(await page('POST', '/console/link', { body: { code: String(body.code) } }))
  const csrf = String((await page('GET', '/console/session', { cookie })).body.csrf)
  const stream = await readEvents(url, { cookie, 'sec-fetch-site': 'same-origin' })
  t.after(() => stream.close())
  await stream.first('open')
  assert.equal((await page('POST', '/console/logout', { cookie, csrf })).status, 204)
  await stream.ended
  const share = poolTable.event_streams.shares[0].max
  const streams = await Promise.all(Array.from({ length: share + 1 }, () => follow('viewer')))
  assert.deepEqual(streams.map(({ status }) => status).toSorted(), [...Array(share).fill(200), 429])
  assert.equal((await follow('here')).status, 200)
  streams.find(({ status }) => status === 200)?.close()
  await until(async () => (await follow('viewer')).status === 200, 'a free stream')
})
