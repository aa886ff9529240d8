import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { Gateway } from '../../gateway.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'

/** Sends a GET to the admin API of a gateway. */
async function ask({ adminUrl }: Gateway, path: string, token = TOKEN) {
  const response = await fetch(`${adminUrl}/v1/sessions${path}`, { headers: { authorization: `Bearer ${token}` } })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

/** A session of `agent` in `namespace` calls a tool; the upstream is unreachable, and a call without the scope is refused. */
async function call(
  { url }: Gateway,
  issuer: TestIssuer,
  { who = 'default/assistant/s1', scope = 'tools:notes', traceparent = '' } = {},
) {
  const [namespace, agent, session] = who.split('/')
  const sub = `spiffe://plat.local/ns/${namespace}/agent/${agent}/session/${session}`
  const names = { plat_ns: namespace, plat_agent: agent, plat_session: session }
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${issuer.token({ sub, scope, ...names })}`,
      'content-type': 'application/json',
      ...(traceparent !== '' && { traceparent }),
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
  })
  await response.arrayBuffer()
  return response.status
}

/** Waits until the list counts `calls` finished calls. */
async function counted(gateway: Gateway, calls: number) {
  const all = async () => (await ask(gateway, '')).body.items
  const sum = (items: { calls: number }[]) => items.reduce((before, one) => before + one.calls, 0)
  await until(async () => sum(await all()) === calls, 'the records of the calls')
  return await all()
}

/** Waits until the timelines of the sessions with this name hold the ends of `calls` calls: the list counts them a write earlier. */
async function recorded(gateway: Gateway, session: string, calls: number) {
  const ended = async () => {
    const { items } = (await ask(gateway, `/${session}/timeline?limit=10000`)).body
    return items.filter(({ rec }: { rec: { kind: string } }) => rec.kind !== 'intent').length
  }
  await until(async () => (await ended()) === calls, 'how the calls ended')
}

test('sessions are listed with calls, spending, taints and pending approvals, also after a restart', async (t) => {
  // Shows D3.endpoint.sessions.
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const first = await started(t, { auditPath }, true)
  await call(first.gateway, first.issuer)
  await call(first.gateway, first.issuer, { scope: 'tools:other' })
  const [one, ...others] = await counted(first.gateway, 2)
  assert.deepEqual(others, [])
  const { startedAt, lastActivity, ...rest } = one
  assert.ok(Date.parse(startedAt) <= Date.parse(lastActivity))
  assert.deepEqual(rest, {
    id: 'default/assistant/s1',
    namespace: 'default',
    agent: 'assistant',
    session: 's1',
    user: 'ada',
    tier: 'tier-0',
    calls: 2,
    denied: 1,
    pendingApprovals: 0,
    taints: [],
    views: [],
    spent: { micros: 0, currency: 'USD' },
  })
  await first.gateway.drain()
  const second = await started(t, { auditPath })
  assert.deepEqual(await counted(second.gateway, 2), [one])
  await call(second.gateway, second.issuer)
  assert.equal((await counted(second.gateway, 3))[0].startedAt, startedAt)
})

test('the list comes in pages of the configured size, and never of more than 5,000', async (t) => {
  // Shows D3.sessions.listMaxSessions and D3.limit.sessionPage.
  const { gateway, issuer } = await started(t, { sessions: { listMaxSessions: 2 } })
  for (const name of ['a', 'b', 'c']) await call(gateway, issuer, { who: `default/assistant/${name}` })
  await until(async () => (await ask(gateway, '?limit=5000')).body.items.length === 3, 'three sessions')
  const { body: page } = await ask(gateway, '')
  assert.deepEqual(
    page.items.map(({ session }: { session: string }) => session),
    ['c', 'b'],
  )
  const { body: last } = await ask(gateway, `?cursor=${encodeURIComponent(page.nextCursor)}`)
  assert.deepEqual([last.items.length, last.nextCursor], [1, null])
  assert.equal((await ask(gateway, '?limit=5001')).status, 400)
})

test('a timeline holds the records of one session, in pages', async (t) => {
  // Shows D3.endpoint.timeline, D3.sessions.timelineMaxItems and D3.limit.timelinePage.
  const { gateway, issuer } = await started(t, { sessions: { timelineMaxItems: 1 } })
  for (const who of ['default/assistant/s1', 'default/assistant/s2', 'default/other/s1', 'default/assistant/s1']) {
    await call(gateway, issuer, { who })
  }
  await recorded(gateway, 's1', 3)
  const own = encodeURIComponent('default/assistant/s1')
  const records: string[] = []
  let cursor = '0'
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 10)
    const { status, body } = await ask(gateway, `/${own}/timeline?cursor=${cursor}`)
    assert.equal(status, 200)
    assert.ok(body.items.length <= 1)
    for (const { rec } of body.items) records.push(`${rec.agent}/${rec.session} ${rec.kind}`)
    if (body.nextCursor === null) break
    cursor = body.nextCursor
  }
  assert.ok(records.length >= 2 && records.every((one) => one.startsWith('assistant/s1 ')), records.join())
  const { body: bothAgents } = await ask(gateway, '/s1/timeline?limit=10000')
  const agents = new Set(bothAgents.items.map(({ rec }: { rec: { agent: string } }) => rec.agent))
  assert.deepEqual([...agents].toSorted(), ['assistant', 'other'])
  for (const wrong of ['a%2Fb', 'a%2Fb%2Fc%2Fd', '%2F'])
    assert.equal((await ask(gateway, `/${wrong}/timeline`)).status, 400)
  assert.equal((await ask(gateway, '/s1/timeline?limit=10001')).status, 400)
  assert.equal((await ask(gateway, '/s1/timeline?cursor=x')).status, 400)
})

test('a role in one namespace gives access to the sessions and records of that namespace', async (t) => {
  const people = await provider(t)
  const { gateway, issuer } = await started(t, {
    adminAuth: {
      mode: 'both',
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      namespaceRoles: { bank: { viewer: ['bank'], auditor: ['bank'] } },
    },
  })
  for (const who of ['default/assistant/s1', 'bank/assistant/s1']) await call(gateway, issuer, { who })
  await recorded(gateway, 's1', 2)
  const banker = await people.token({ groups: ['bank'] })
  const { body } = await ask(gateway, '', banker)
  assert.deepEqual(
    body.items.map(({ id }: { id: string }) => id),
    ['bank/assistant/s1'],
  )
  const { body: timeline } = await ask(gateway, '/s1/timeline', banker)
  assert.ok(timeline.items.length > 0)
  for (const { rec } of timeline.items) assert.equal(rec.namespace, 'bank')
})

test('the records of a timeline link to the traces that their callers were in', async (t) => {
  // Shows D3.sessions.traceURLTemplate.
  const traceURLTemplate = 'https://traces.example/{traceId}?at={spanId}&who={namespace}/{session}'
  const { gateway, issuer } = await started(t, { sessions: { traceURLTemplate } })
  const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  await call(gateway, issuer)
  await call(gateway, issuer, { traceparent: `00-${traceId}-${spanId}-01` })
  const links = async () => {
    const { items } = (await ask(gateway, '/s1/timeline')).body
    return items.filter(({ rec }: { rec: { kind: string } }) => rec.kind !== 'intent')
  }
  await until(async () => (await links()).length === 2, 'the records of both')
  assert.deepEqual(
    (await links()).map(({ traceUrl }: { traceUrl?: string }) => traceUrl),
    [undefined, `https://traces.example/${traceId}?at=${spanId}&who=default/s1`],
  )
  const wrong = { traceURLTemplate: 'https://traces.example/{traceId}/{user}' }
  await assert.rejects(started(t, { sessions: wrong }), /sessions\.traceURLTemplate: has no placeholder \{user\}: use /)
})
