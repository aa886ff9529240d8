import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { AUDIENCE, provider } from '../testing/people.ts'
import { started } from '../testing/started.ts'
import { ALL_ROLES, allows, type Role } from './roles.ts'
import { adminRoutes, type RouteRow } from './routes.ts'

/** Nothing that a parameter names exists, so that an accepted request changes nothing. */
const PARAMETERS: Readonly<Record<string, string>> = {
  ':id': '0197a000-0000-7000-8000-000000000000',
  ':namespace': 'shop',
  ':name': 'none',
  ':seq': '999999999',
}

/** A gateway whose people have the role that their name says: `viewer` everywhere, `shop-viewer` in namespace shop. */
async function setUp(t: TestContext, own: object = {}) {
  const people = await provider(t)
  const named = (prefix: string) => Object.fromEntries(ALL_ROLES.map((role) => [role, [`user:${prefix}${role}`]]))
  const adminAuth = {
    mode: 'oidc',
    roles: named(''),
    namespaceRoles: {
      shop: { ...named('shop-'), viewer: ['user:shop-viewer', 'user:reader', 'user:mixed'] },
      bank: { approver: ['user:reader'], killswitch: ['user:mixed'] },
    },
    oidc: { issuer: people.state.issuer, audience: AUDIENCE },
  }
  const { gateway } = await started(t, { adminAuth, ...own })
  const tokens = new Map<string, string>()
  return async (user: string | null, route: string, body?: object) => {
    if (user !== null && !tokens.has(user)) tokens.set(user, await people.token({ preferred_username: user }))
    const [method = '', path = ''] = route.split(' ')
    const isBodied = body !== undefined || method === 'POST'
    const response = await fetch(gateway.adminUrl + path, {
      method,
      headers: {
        ...(user !== null && { authorization: `Bearer ${tokens.get(user)}` }),
        ...(isBodied && { 'content-type': 'application/json' }),
      },
      ...(isBodied && { body: JSON.stringify(body ?? {}) }),
    })
    // A stream of events has no end.
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const text = isStream ? '' : await response.text()
    if (isStream) await response.body?.cancel()
    return { status: response.status, body: text === '' ? null : JSON.parse(text), text }
  }
}

function calling(route: string): string {
  const query = route.includes('/debug/') ? '?seconds=0' : ''
  return route.replaceAll(/:\w+/g, (name) => PARAMETERS[name] ?? name) + query
}

/** Statuses of routes that exist but that the caller may not call. */
function expected({ needs, within }: RouteRow, role: Role | null, where: 'everywhere' | 'shop'): boolean {
  if (needs === 'none' || needs === 'person') return true
  if (role === null || (where === 'shop' && within !== 'namespace')) return false
  return allows(new Set([role]), needs)
}

test('every route permits only the roles of its row', async (t) => {
  // Shows D3.adminAuth.role.audit-forwarder.
  const ask = await setUp(t)
  const absent: string[] = []
  for (const [route, row] of Object.entries(adminRoutes)) {
    const request = calling(route)
    const stranger = await ask(null, request)
    // Another method of the same path may exist.
    if (/nothing at this path/.test(stranger.text) || stranger.status === 405) {
      absent.push(route)
      continue
    }
    assert.equal(stranger.status === 401, row.needs !== 'none', `${request} without a token: ${stranger.status}`)
    const people: [string, Role | null, 'everywhere' | 'shop'][] = [['somebody', null, 'everywhere']]
    for (const role of ALL_ROLES) people.push([role, role, 'everywhere'], [`shop-${role}`, role, 'shop'])
    const answers = await Promise.all(people.map(([user]) => ask(user, request)))
    for (const [index, [user, role, where]] of people.entries()) {
      const { status, text } = answers[index] ?? assert.fail()
      assert.equal(status !== 403, expected(row, role, where), `${request} as ${user}: ${status} ${text}`)
      assert.notEqual(status, 401, `${request} as ${user}`)
      assert.notEqual(status, 500, `${request} as ${user}: ${text}`)
    }
  }
  // Rows of disabled features; any other row without a route is a bug.
  const views = ['watch', 'control', 'page/*'].map((name) => `GET /v1/sessions/:id/view/${name}`)
  const memory = ['GET /v1/memory', 'DELETE /v1/memory/users/:user']
  const accounts = ['GET /v1/accounts', 'DELETE /v1/accounts/:id']
  const audit = ['POST /v1/audit/anchors', 'POST /v1/audit/segments']
  assert.deepEqual(absent, [...views, ...memory, 'POST /v1/admin/config:bundle', ...accounts, ...audit])
})

test('a caller can read its own name and roles', async (t) => {
  const ask = await setUp(t)
  assert.deepEqual((await ask('viewer', 'GET /v1/whoami')).body, {
    by: 'user:viewer',
    roles: ['viewer'],
    namespaceRoles: {},
    tenantRoles: {},
  })
  assert.deepEqual((await ask('reader', 'GET /v1/whoami')).body, {
    by: 'user:reader',
    roles: [],
    namespaceRoles: { shop: ['viewer'], bank: ['approver'] },
    tenantRoles: {},
  })
})

test('with a role in one namespace only what is of that namespace is revoked, seen and lifted', async (t) => {
  // Shows D3.adminAuth.namespaceRoles.
  const ask = await setUp(t)
  const revoke = (user: string, target: object) => ask(user, 'POST /v1/revocations', { target })
  for (const target of [{ session: 'shop/a/s' }, { agent: 'shop/a' }, { namespace: 'shop' }]) {
    assert.equal((await revoke('shop-killswitch', target)).status, 201, JSON.stringify(target))
  }
  const elsewhere = [
    { session: 'shopping/a/s' },
    { agent: 'bank/a' },
    { namespace: 'bank' },
    { user: 'ada' },
    { jti: 'x' },
    { tenant: 'shop' },
    { all: true },
  ]
  for (const target of elsewhere) {
    const { status, body } = await revoke('shop-killswitch', target)
    assert.deepEqual([status, body.error], [403, 'forbidden'], JSON.stringify(target))
    assert.match(body.message, /needs the role killswitch (everywhere|in (namespace|tenant) \w+)/)
    assert.equal((await revoke('killswitch', target)).status, 201)
  }
  const listed = async (user: string) =>
    (await ask(user, 'GET /v1/revocations')).body.items.map(({ target }: { target: object }) => target)
  assert.equal((await listed('viewer')).length, 10)
  const own = [{ namespace: 'shop' }, { agent: 'shop/a' }, { session: 'shop/a/s' }]
  assert.deepEqual(await listed('shop-viewer'), own)
  assert.deepEqual(await listed('reader'), [{ namespace: 'bank' }, { agent: 'bank/a' }, ...own])
  const { items } = (await ask('viewer', 'GET /v1/revocations')).body
  for (const { id, target } of items) {
    const isOwn = JSON.stringify(target).includes('"shop') && !target.tenant && !target.session?.startsWith('shopping')
    const lifted = await ask('shop-killswitch', `DELETE /v1/revocations/${id}`)
    // Objects of other namespaces are not found; those that the caller may see but not change are forbidden.
    assert.equal(lifted.status, isOwn ? 204 : 404, JSON.stringify(target))
    if (!isOwn)
      assert.equal(
        lifted.text.replace(/"requestId":"[^"]*"/, ''),
        nothing(await ask('shop-killswitch', `DELETE /v1/revocations/none`)),
      )
  }
})

function nothing({ text }: { text: string }): string {
  return text.replace(/"requestId":"[^"]*"/, '')
}

test('a change of a visible object without the role answers 403, not 404', async (t) => {
  const ask = await setUp(t)
  await ask('killswitch', 'POST /v1/revocations', { target: { agent: 'shop/a' } })
  const { items } = (await ask('reader', 'GET /v1/revocations')).body
  // `reader` sees shop and revokes nowhere; `mixed` sees shop and revokes in bank.
  for (const user of ['mixed', 'shop-viewer']) {
    assert.equal((await ask(user, `DELETE /v1/revocations/${items[0].id}`)).status, 403, user)
  }
  assert.equal((await ask('reader', `DELETE /v1/revocations/${items[0].id}`)).status, 403)
})

test('records of the ledger are for auditors, and of one namespace for the auditors of it', async (t) => {
  // Shows D3.adminAuth.role.auditor.
  const dir = tempFolder()
  const ask = await setUp(t, { auditPath: join(dir, 'audit.jsonl') })
  for (const namespace of ['shop', 'bank']) await ask('killswitch', 'POST /v1/revocations', { target: { namespace } })
  const kinds = async (user: string, query = '') => {
    const { status, body } = await ask(user, `GET /v1/audit/records${query}`)
    return status === 200
      ? body.items.map(({ rec }: { rec: Record<string, string> }) => `${rec.kind} ${rec.namespace ?? ''}`.trim())
      : status
  }
  assert.deepEqual(await kinds('auditor'), ['config', 'revocation shop', 'admin', 'revocation bank', 'admin'])
  assert.deepEqual(await kinds('admin', '?kind=revocation'), ['revocation shop', 'revocation bank'])
  assert.deepEqual(await kinds('shop-auditor'), ['revocation shop'])
  assert.deepEqual(await kinds('shop-auditor', '?namespace=bank'), [])
  for (const user of ['viewer', 'approver', 'killswitch', 'audit-forwarder']) assert.equal(await kinds(user), 403)
})
