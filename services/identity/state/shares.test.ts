import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PoolBound, poolTable, systemIds, TestClock } from '@plat/core'
import { PendingBootstraps } from '../bootstrap/pending-bootstraps.ts'
import type { DelegationRequest } from '../exchange/request.ts'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { context } from '../proof/testing/suite.ts'
import type { BrokerPools } from '../serve/pools.ts'
import { memoryState } from './state.ts'

const request: DelegationRequest = {
  subjectToken: 'subject',
  subjectKind: 'transaction',
  actorToken: 'actor',
  audience: null,
  scopes: null,
  ttlSeconds: null,
}

type Broker = ReturnType<typeof memoryState>

/** How each pool is used once by a caller; returns whether the caller was served. */
const USES: Readonly<Record<string, (state: Broker, caller: string, n: number) => Promise<boolean>>> = {
  nonces: async ({ nonces }, caller) => (await nonces.issue({ check: 'tee', jkt: null }, caller)) !== null,
  bound_tokens: async ({ records }, agent, n) => {
    const claims = { jti: `${agent} ${n}`, namespace: 'shop', agent, expiresAt: 4_000_000_000 }
    return (await records.insert(claims, 'key')) === 'inserted'
  },
  transactions: async ({ once }, agent, n) => {
    const use = {
      txn: `${agent} ${n}`,
      actor: agent,
      agent: `shop/${agent}`,
      jkt: null,
      expiresAt: 4_000_000_000,
      request,
    }
    return (await once.claim(use, 'token')).kind === 'first'
  },
  holder_proofs: async ({ replays }, agent, n) =>
    (await replays.use({ jkt: 'key', jti: `${agent} ${n}`, until: 4_000_000_000_000, caller: agent })) === 'fresh',
  used_credentials: async ({ firstUse }, agent, n) => {
    return (await firstUse.claim(`${agent} ${n}`, { ...context, agent }, 4_000_000_000_000)) === null
  },
}

for (const [name, row] of Object.entries(poolTable).filter(([name]) => Object.hasOwn(USES, name))) {
  test(`a caller at its share of ${name} is refused while another is served`, async () => {
    const refused: string[] = []
    const pools: BrokerPools = {
      of: (pool) => ({ watch() {}, refused: (bound: PoolBound) => void refused.push(`${pool} ${bound}`) }),
    }
    const clock = new TestClock()
    const state = memoryState({ clock, ids: systemIds(clock), pools })
    const use = USES[name] ?? assert.fail(name)
    const share = row.shares[0].max
    for (let n = 0; n < share; n++) if (!(await use(state, 'greedy', n))) assert.fail(`${n} of ${share}`)
    assert.equal(await use(state, 'greedy', share), false)
    assert.deepEqual(refused, [`${name} share`])
    assert.equal(await use(state, 'modest', 0), true)
  })
}

test('a peer at its share of bootstrap requests is refused while another is served', async () => {
  // No request of this test reads an object.
  const api: ClusterApi = Object.create(null)
  const requests = new PendingBootstraps({ api, clock: new TestClock(), cap: 12 })
  const gate = Promise.withResolvers<void>()
  const held = [1, 2, 3].map(() => requests.admit('10.0.0.1', () => gate.promise))
  await assert.rejects(
    requests.admit('10.0.0.1', async () => {}),
    /too many concurrent bootstrap requests/,
  )
  assert.equal(await requests.admit('10.0.0.2', async () => 'served'), 'served')
  gate.resolve()
  await Promise.all(held)
  assert.equal(await requests.admit('10.0.0.1', async () => 'served'), 'served')
})
