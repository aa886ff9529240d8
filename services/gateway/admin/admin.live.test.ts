import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { type Listener, listen } from '@plat/http'
import type { Ledgers, Rec } from '@plat/ledger'
import { type Log, silentLog } from '@plat/process'
import Type from 'typebox'
import { tokenMode } from '../testing/admin.ts'
import { AdminError, type AdminOptions, type AdminRoutes, bodyAs, createAdmin, page, parameter } from './index.ts'

const records: Rec[] = []
const head = { seq: 1, hash: '' }
const ledgers: Ledgers = {
  of: () => ({
    append: async (rec) => {
      records.push(rec)
      return head
    },
    enter(rec, waiter) {
      records.push(rec)
      waiter.durable(head)
    },
    head: () => head,
    health: 'ok',
    close: async () => {},
  }),
}

const routes: AdminRoutes = {
  mount(context) {
    context.on('GET /v1/pins', async ({ query }) => page([{ id: 'c' }, { id: 'b' }, { id: 'a' }], query))
    context.on('POST /v1/approvals/:id/deny', async (request, _reply, { by }) => {
      const { name } = bodyAs(Type.Object({ name: Type.String() }, { additionalProperties: false }), request.body)
      if (name === 'taken') throw new AdminError('conflict', 'the name is taken')
      return { id: parameter(request.params, 'id'), by }
    })
  },
}

const TOKEN = 'a-token-of-the-test'
const listeners: Listener[] = []
after(() => Promise.all(listeners.map((one) => one.close())))

async function served(
  env: NodeJS.ProcessEnv,
  more: Partial<AdminOptions> = {},
  features: readonly AdminRoutes[] = [routes],
): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const admin = createAdmin({ ...tokenMode, env, ledgers, log: silentLog, ...more })
  const listener = await listen({
    address: '127.0.0.1:0',
    clock: systemClock,
    ids: systemIds(systemClock),
    log: silentLog,
    api: (app) => admin.mount(app, features),
  })
  listeners.push(listener)
  return (path, init) => fetch(listener.url + path, init)
}

const ask = await served({ PLAT_ADMIN_TOKEN: TOKEN })
/** The answer's members, read as text. */
async function fieldsOf(response: Response): Promise<Readonly<Record<string, string>>> {
  const body: unknown = await response.json()
  const members = typeof body === 'object' && body !== null ? Object.entries(body) : []
  return Object.fromEntries(members.map(([name, value]) => [name, String(value)]))
}

const authorization = `Bearer ${TOKEN}`
const as = (name: string) => ({
  method: 'POST',
  headers: { authorization, 'content-type': 'application/json' },
  body: JSON.stringify({ name }),
})

test('only the exact token is accepted, and the refusal says how to authenticate', async () => {
  // Shows D3.adminAuth.mode.token.
  for (const wrong of [undefined, TOKEN, 'Bearer ', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`]) {
    const response = await ask('/v1/pins', { headers: { ...(wrong !== undefined && { authorization: wrong }) } })
    assert.equal(response.status, 401, String(wrong))
    assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer/)
    const body = await fieldsOf(response)
    assert.deepEqual(Object.keys(body), ['error', 'message', 'requestId'])
    assert.equal(body.error, 'unauthenticated')
    assert.equal(body.requestId, response.headers.get('x-plat-request-id'))
  }
  const response = await ask('/v1/pins', { headers: { authorization } })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('cache-control'), 'no-store')
})

test('a list is paged by limit and cursor, and both are checked', async () => {
  const read = async (path: string) => (await ask(path, { headers: { authorization } })).json()
  assert.deepEqual(await read('/v1/pins?limit=2'), { items: [{ id: 'c' }, { id: 'b' }], nextCursor: 'b' })
  assert.deepEqual(await read('/v1/pins?limit=2&cursor=b'), { items: [{ id: 'a' }], nextCursor: null })
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=1&limit=2']) {
    const refused = await fieldsOf(await ask(`/v1/pins?${query}`, { headers: { authorization } }))
    assert.match(refused.message ?? '', /^limit:/, query)
  }
})

test('a change is recorded with who, what and how it went; a read and a stranger leave no record', async () => {
  records.length = 0
  assert.deepEqual(await (await ask('/v1/approvals/x/deny', as('y'))).json(), { id: 'x', by: 'token:admin' })
  assert.equal((await ask('/v1/approvals/x/deny', as('taken'))).status, 409)
  await ask('/v1/pins', { headers: { authorization } })
  assert.equal((await ask('/v1/approvals/x/deny', { method: 'POST' })).status, 401)
  assert.deepEqual(
    records.map(({ kind, action, path, by, status }) => ({ kind, action, path, by, status })),
    [200, 409].map((status) => ({
      kind: 'admin',
      action: 'POST /v1/approvals/:id/deny',
      path: '/v1/approvals/x/deny',
      by: 'token:admin',
      status,
    })),
  )
})

test('with auditFailurePolicy closed a change is recorded before it is made, and not made when that fails', async () => {
  const made: string[] = []
  let works = true
  const written: Rec[] = []
  const failing: Ledgers = {
    of: (tenant) => ({
      ...ledgers.of(tenant),
      append: async (rec) => {
        if (!works) throw new Error('the disk is full')
        written.push(rec)
        return head
      },
    }),
  }
  const change: AdminRoutes = {
    mount(context) {
      for (const route of [
        'POST /v1/approvals/:id/deny',
        'POST /v1/revocations',
        'DELETE /v1/memory/users/:user',
      ] as const) {
        context.on(route, async () => {
          made.push(`${route} after ${written.length}`)
          return {}
        })
      }
    },
  }
  const closed = await served({ PLAT_ADMIN_TOKEN: TOKEN }, { recordsFirst: true, ledgers: failing }, [change])
  assert.equal((await closed('/v1/approvals/x/deny', as('y'))).status, 200)
  assert.deepEqual(made, ['POST /v1/approvals/:id/deny after 1'])
  const [intent, outcome] = written.map(({ phase, status, by, path }) => ({ phase, status, by, path }))
  const who = { by: 'token:admin', path: '/v1/approvals/x/deny' }
  assert.deepEqual(intent, { ...who, phase: 'intent', status: undefined })
  assert.deepEqual(outcome, { ...who, phase: undefined, status: 200 })
  works = false
  const refused = await closed('/v1/approvals/x/deny', as('y'))
  assert.deepEqual([refused.status, (await fieldsOf(refused)).error], [503, 'audit_unavailable'])
  const forget = await closed('/v1/memory/users/ada', { method: 'DELETE', headers: { authorization } })
  assert.equal(forget.status, 503, 'a feature that writes its own record as well')
  assert.equal(made.length, 1)
  assert.equal((await closed('/v1/revocations', as('y'))).status, 200, 'calls can always be stopped')
})

test('refused tokens are counted and logged without the token, and a good one passes at once', async () => {
  const reasons: string[] = []
  const lines: string[] = []
  const log: Log = { ...silentLog, warn: (fields, message) => void lines.push(JSON.stringify([fields, message])) }
  const guarded = await served({ PLAT_ADMIN_TOKEN: TOKEN }, { refused: (reason) => void reasons.push(reason), log })
  for (const token of ['guess-1', 'guess-2']) {
    assert.equal((await guarded('/v1/pins', { headers: { authorization: `Bearer ${token}` } })).status, 401)
  }
  assert.equal((await guarded('/v1/pins')).status, 401)
  assert.equal((await guarded('/v1/pins', { headers: { authorization } })).status, 200)
  assert.deepEqual(reasons, ['invalid', 'invalid', 'missing'])
  assert.match(lines.join(), /"peer":"127.0.0.1","reason":"invalid".*an admin token was refused/)
  assert.doesNotMatch(lines.join(), /guess/)
})

test('a body that does not fit names its field, and one that is not JSON is refused', async () => {
  const wrong = await ask('/v1/approvals/x/deny', { ...as('y'), body: '{"name":7}' })
  assert.equal(wrong.status, 400)
  assert.match((await fieldsOf(wrong)).message ?? '', /^name: /)
  const extra = await ask('/v1/approvals/x/deny', { ...as('y'), body: '{"name":"y","more":1}' })
  assert.equal(extra.status, 400)
  const twice = await ask('/v1/approvals/x/deny', { ...as('y'), body: '{"name":"y","name":"z"}' })
  assert.equal((await fieldsOf(twice)).error, 'invalid_request')
})

test('without the token there is no admin API: every path is 404', async () => {
  // Shows D3.error.adminToken.
  const none = await served({})
  assert.equal((await none('/v1/pins', { headers: { authorization } })).status, 404)
})

test('the token may be in a file, and a token in both the file and the variable is refused at start', async () => {
  assert.throws(
    () =>
      createAdmin({
        ...tokenMode,
        env: { PLAT_ADMIN_TOKEN: 'a', PLAT_ADMIN_TOKEN_FILE: '/x' },
        ledgers,
        log: silentLog,
      }),
    /PLAT_ADMIN_TOKEN/,
  )
})
