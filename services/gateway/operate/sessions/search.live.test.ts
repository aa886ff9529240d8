import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestIssuer } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import type { Gateway } from '../../gateway.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { SessionBook } from './book.ts'
import { sessionPage } from './order.ts'

async function list({ adminUrl }: Gateway, query: string, token = TOKEN) {
  const response = await fetch(`${adminUrl}/v1/sessions?${query}`, { headers: { authorization: `Bearer ${token}` } })
  const body = JSON.parse(await response.text())
  return {
    status: response.status,
    names: (body.items ?? []).map(({ session }: { session: string }) => session),
    items: body.items,
    nextCursor: body.nextCursor,
  }
}

/** A session calls a tool; without the scope the call is refused. */
async function call({ url }: Gateway, issuer: TestIssuer, who: string, { scope = 'tools:notes' } = {}) {
  const [namespace, agent, session] = who.split('/')
  const sub = `spiffe://plat.local/ns/${namespace}/agent/${agent}/session/${session}`
  const names = { plat_ns: namespace, plat_agent: agent, plat_session: session }
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${issuer.token({ sub, scope, ...names })}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
  })
  await response.arrayBuffer()
}

test('sessions are searched by names, words, time and refusals, only among those that the caller may see', async (t) => {
  const people = await provider(t)
  const { gateway, issuer } = await started(t, {
    adminAuth: {
      mode: 'both',
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      namespaceRoles: { bank: { viewer: ['bank'] } },
    },
  })
  for (const who of ['default/assistant/one', 'default/helper/two', 'bank/assistant/three'])
    await call(gateway, issuer, who)
  await call(gateway, issuer, 'default/assistant/four', { scope: 'tools:other' })
  await until(async () => (await list(gateway, '')).names.length === 4, 'four sessions')
  const found = async (query: string) => (await list(gateway, query)).names.toSorted().join()
  assert.equal(await found('agent=helper'), 'two')
  assert.equal(await found('namespace=default&agent=assistant&session=one'), 'one')
  assert.equal(await found('denied=true&namespace=default&agent=assistant'), 'four')
  assert.equal(await found('user=ada&agent=assistant'), 'four,one,three')
  assert.equal(await found('q=BANK%20three'), 'three')
  assert.equal(await found('q=bank%20two'), '')
  assert.equal(await found('from=2999-01-01T00:00:00Z'), '')
  assert.equal(await found('to=2000-01-01T00:00:00Z'), '')
  assert.equal(await found('from=2000-01-01T00:00:00Z&to=2999-01-01T00:00:00Z'), 'four,one,three,two')
  for (const nothing of ['pending=true', 'labelled=true', 'spent=true', 'label=untrusted-input', 'user=nobody'])
    assert.equal(await found(nothing), '', nothing)
  const banker = await people.token({ groups: ['bank'] })
  assert.deepEqual((await list(gateway, 'q=assistant', banker)).names, ['three'])
  for (const wrong of ['denied=yes', 'from=today', 'order=name', 'order=activity&cursor=x', `q=${'x'.repeat(257)}`])
    assert.equal((await list(gateway, wrong)).status, 400, wrong)
})

test('with order=activity the latest session is first, page by page', async (t) => {
  const { gateway, issuer } = await started(t, {})
  for (const name of ['b', 'c', 'a']) {
    await call(gateway, issuer, `default/assistant/${name}`)
    await until(async () => (await list(gateway, `session=${name}`)).names.length === 1, `session ${name}`)
  }
  const first = await list(gateway, 'order=activity&limit=2')
  const second = await list(gateway, `order=activity&limit=2&cursor=${encodeURIComponent(first.nextCursor)}`)
  assert.deepEqual([first.names, second.names, second.nextCursor], [['a', 'c'], ['b'], null])
})

test('pages by activity have every session once, also with equal times', () => {
  const book = new SessionBook()
  for (let at = 0; at < 500; at++)
    book.see({ kind: 'outcome', namespace: 'n', agent: 'a', session: `s${at % 100}` }, Math.floor(at / 7))
  const all = [...book.sessions()]
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: object = { order: 'activity', limit: '7', ...(cursor !== '' && { cursor }) }
    const page = sessionPage(all, query, { usual: 10, most: 100 })
    seen.push(...page.sessions.map(({ session }) => session))
    cursor = page.nextCursor
  }
  assert.deepEqual([seen.length, new Set(seen).size], [100, 100])
})
