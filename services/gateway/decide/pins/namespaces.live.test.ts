import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { listen } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal } from '@plat/state'
import { createAdmin } from '../../admin/index.ts'
import { inNamespaces } from '../../testing/admin.ts'
import { PinBook } from './book.ts'
import { createPinReports } from './report.ts'
import { createPinRoutes } from './routes.ts'
import type { PinRules } from './rules.ts'

const digestOf = (digit: string) => `sha256:${digit.repeat(64)}`
const rules: PinRules = { mode: 'enforce', onChange: 'hide', allowUnpinned: false, pins: new Map() }
const onFault = (error: unknown) => assert.fail(String(error))

/** Two servers, each with a tool that is not accepted yet. */
async function served() {
  const clock = systemClock
  const book = await PinBook.open({ journal: createMemoryJournal(() => clock.now()), clock, onNotice() {}, onFault })
  for (const server of ['shop/till', 'bank/vault']) {
    book.observe(server, rules, [{ name: 'open', digest: digestOf('a'), text: '{"name":"open"}' }])
  }
  const reports = createPinReports(book, (server) => (server.endsWith('none') ? null : rules))
  const frame = inNamespaces({
    shop: { admin: ['user:ada'], viewer: ['user:vic', 'user:kit'] },
    bank: { admin: ['user:kit'] },
  })
  const head = { seq: 1, hash: '' }
  const ledgers: Ledgers = {
    of: () => ({ append: async () => head, enter() {}, head: () => head, health: 'ok', close: async () => {} }),
  }
  const admin = createAdmin({ ...frame, env: {}, ledgers, log: silentLog })
  const routes = createPinRoutes({ book, reports, onDecided() {}, onFault })
  return await listen({
    address: '127.0.0.1:0',
    clock,
    ids: systemIds(clock),
    log: silentLog,
    api: (app) => admin.mount(app, [routes]),
  })
}

test('only roles in the namespace of a server show, reject and accept its pins', async (t) => {
  const listener = await served()
  t.after(() => listener.close())
  const ask = async (user: string, path: string, body?: object) => {
    const response = await fetch(`${listener.url}/v1/pins${path}`, {
      headers: { authorization: `Bearer ${user}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const accept = (user: string, server: string, decision = 'accept') =>
    ask(user, `/${server}/${decision}`, { tool: 'open', digest: digestOf('a') })
  for (const user of ['ada', 'vic']) {
    assert.deepEqual(
      (await ask(user, '')).body.items.map(({ id }: { id: string }) => id),
      ['shop/till'],
    )
    assert.equal((await ask(user, '/shop/till')).status, 200)
    for (const path of ['/bank/vault', '/bank/vault/definition?tool=open', '/bank/none', '/shop/none']) {
      assert.equal((await ask(user, path)).status, 404, path)
    }
  }
  assert.deepEqual([(await accept('ada', 'bank/vault')).status, (await accept('vic', 'bank/vault')).status], [404, 403])
  assert.equal((await accept('vic', 'shop/till')).status, 403)
  // `kit` can accept in bank and only view shop.
  assert.equal((await accept('kit', 'shop/till')).status, 403)
  for (const [user, server] of [
    ['ada', 'bank/vault'],
    ['vic', 'shop/till'],
    ['kit', 'shop/till'],
  ] as const)
    assert.match(String((await accept(user, server, 'reject')).status), /^40[34]$/)
  assert.equal((await accept('ada', 'shop/till', 'reject')).body.tools[0].rejected, true)
  assert.equal((await accept('ada', 'shop/till')).status, 200)
})
