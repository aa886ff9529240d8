import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { ALL_ROLES } from '../../admin/roles.ts'
import { BLUE, RED } from './testing/files.ts'
import { populate } from './testing/populate.ts'
import type { Reply } from './testing/requests.ts'
import { setUpTenants, type TwoTenants } from './testing/two-tenants.ts'
import { leakIn, requestsAt, type WalkedRequest } from './testing/walk.ts'

/** Requests of the hostile tenant; `npm run long -- -only tenants` sends 100,000. */
const REQUESTS = Number(process.env.PLAT_TEST_TENANT_REQUESTS ?? 240)
const SEED = Number(process.env.PLAT_TEST_SEED ?? 20_261_128)
const ATTACKERS = 6
/** A user of both tenants. */
const COMMON = 'ada'
/** Calls of the common user in the tenant that is attacked: below the cap of one user. */
const CAREFUL = 20

/** Mixing constants of a 32-bit generator (Mulberry32). */
const STEP = 0x6d2b79f5

/** Random draws that the same seed repeats. */
class Draws {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** An integer from 0 to `n` - 1. */
  below(n: number): number {
    this.#state = (this.#state + STEP) >>> 0
    const mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  one<T>(items: readonly T[]): T {
    return items[this.below(items.length)] ?? assert.fail('nothing to draw from')
  }
}

interface Attack {
  readonly what: string
  send(): Promise<Reply>
  /** Returns why the reply shows that something crossed, or null. */
  crossed(reply: Reply): string | null
}

/** Attacks that the hostile tenant can send, each with random parts. */
function attacksOf(fixture: TwoTenants, walk: readonly WalkedRequest[], dice: Draws): (() => Attack)[] {
  const { token, call, admin, gateway } = fixture
  const spiffe = `spiffe://plat.local/ns/${RED.namespace}/agent/red-agent/session/red-session`
  const inRed = { plat_ns: RED.namespace, plat_agent: 'red-agent', plat_session: 'red-session' }
  const refusedAs = (status: number, pattern: RegExp) => (reply: Reply) =>
    reply.status === status && pattern.test(reply.text) ? null : `${reply.status} ${reply.text}`
  const forged = (what: string, own: object, by: string) => (): Attack => ({
    what,
    send: () =>
      call(token(BLUE, { ...own, jti: `j${dice.below(1e9)}` }, by), dice.one(['red-notes', 'blue-notes', 'shared'])),
    crossed: refusedAs(401, /./),
  })
  const agent = (namespace: string, name: string): Promise<Reply> =>
    fetch(`${gateway.url}/a2a/${namespace}/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token(BLUE)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: `t${dice.below(100)}` } }),
    }).then(async (response) => ({ status: response.status, text: await response.text(), body: null }))
  return [
    () => {
      const request = dice.one(walk)
      const odd = dice.chance(30)
        ? `${request.route.includes('?') ? '&' : '?'}${dice.one(['tenant=red', 'tenant=re', 'tenant=RED', 'tenant=..%2Fred', 'limit=1000', `cursor=${dice.below(50)}`, 'order=newest', 'text=crims'])}`
        : ''
      const route = `${request.route}${odd}`
      const as = `${dice.one(['blue', 'blue-ns'])}-${dice.one(ALL_ROLES)}`
      return {
        what: `${route} as ${as}`,
        send: () => admin(route, { as, body: request.body }),
        crossed: (reply) => leakIn(reply, { ...request, route }, RED),
      }
    },
    forged('a token for the namespace of another tenant', inRed, 'blue'),
    forged('a token of the broker for the namespace of a tenant', inRed, ''),
    forged('a token of another tenant for a namespace', {}, 'red'),
    forged('a delegation from another tenant', { act: { sub: spiffe, act: { sub: 'user:ada' } } }, 'blue'),
    forged(
      'a fork of a session of another tenant',
      { plat_parent_session: 'red-session', plat_lineage: [spiffe] },
      'blue',
    ),
    () => ({
      what: 'a server of another tenant that is shared with the namespace',
      send: () => call(token(BLUE), 'red-notes'),
      crossed: refusedAs(200, /unknown_server/),
    }),
    () => ({
      what: 'an agent of another tenant, or of none',
      send: () => (dice.chance(50) ? agent('red-1', 'red-agent') : agent('free', 'free-agent')),
      crossed: refusedAs(200, /unknown_agent|no agent/i),
    }),
    () => ({
      what: 'spending of a user of both tenants',
      send: () => call(token(BLUE, { act: { sub: `user:${COMMON}` } }), 'blue-notes', { text: 'azure' }),
      crossed: ({ text }) => (/done|budget_exceeded/.test(text) ? null : text),
    }),
  ]
}

test('nothing crosses between two tenants under load while one of them is hostile', async (t) => {
  // Shows D3.metric.plat_gateway_tenant_crossings_total.
  t.diagnostic(`${REQUESTS} requests, PLAT_TEST_SEED=${SEED}`)
  const fixture = await setUpTenants(t)
  const { admin, call, token, ledger, ledgerPath, gateway } = fixture
  const [ends, dice] = [new AbortController(), new Draws(SEED)]
  const owned = await populate(fixture, RED, ends.signal)
  const before = await admin('GET /v1/approvals', { as: 'red-viewer' })
  const attacks = attacksOf(fixture, await requestsAt(fixture, RED, owned), dice)
  const crossed: string[] = []
  let [sent, exceeded, isOver] = [0, 0, false]
  const attacker = async () => {
    while (sent < REQUESTS) {
      sent++
      // Half of the requests walk the admin API.
      const attack = (dice.chance(50) ? attacks[0] : dice.one(attacks))?.() ?? assert.fail()
      const reply = await attack.send()
      if (reply.text.includes('budget_exceeded')) exceeded++
      const why = attack.crossed(reply)
      if (why !== null && crossed.length < 20) crossed.push(`${attack.what}: ${why}`)
    }
  }
  let served = 0
  const victim = async () => {
    while (!isOver) {
      const user = served < CAREFUL ? COMMON : `crimson-${served}`
      const reply = await call(token(RED, { act: { sub: `user:${user}` } }), 'red-notes', { text: `crimson-${served}` })
      if (reply.text.includes(`done crimson-${served}`)) served++
      else if (crossed.length < 20) crossed.push(`a call of the other tenant: ${reply.status} ${reply.text}`)
    }
  }
  const serving = victim()
  await Promise.all(Array.from({ length: ATTACKERS }, attacker))
  isOver = true
  await serving
  assert.deepEqual(crossed, [])
  assert.ok(served > 10, `${served} calls of the tenant that was attacked`)
  assert.equal((await admin('GET /v1/approvals', { as: 'red-viewer' })).text, before.text)
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  for (const by of ['origin', 'target'])
    assert.match(metrics, new RegExp(`plat_gateway_tenant_crossings_total\\{by="${by}"\\} [1-9]`))
  if (REQUESTS > 10_000) assert.ok(exceeded > 0, 'the common user has no budget left in the hostile tenant')
  ends.abort()
  for (const tenant of ['', 'red', 'blue']) {
    const { verdict, message } = await verifyLedger(ledgerPath(tenant))
    // Records since the last checkpoint are not signed yet.
    assert.ok(verdict === 'valid' || verdict === 'unproven', message)
  }
  assert.doesNotMatch(ledger('red'), /azure/)
  assert.doesNotMatch(ledger('blue'), /crimson/)
  assert.doesNotMatch(ledger(''), /crimson|azure/)
})
