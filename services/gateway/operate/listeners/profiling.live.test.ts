import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, systemIds, TestClock } from '@plat/core'
import { listen } from '@plat/http'
import { silentLog } from '@plat/process'
import { createAdmin } from '../../admin/index.ts'
import { tokenMode } from '../../testing/admin.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { createProfiling } from './profiling.ts'

const headers = { authorization: `Bearer ${TOKEN}` }

test('profiles and metrics are served on the admin listener only, to authorized callers', async (t) => {
  // Shows D3.listen.adminListen, D3.endpoint.metrics.
  const { gateway } = await started(t, { adminListen: 'localhost:0' })
  for (const path of ['/debug/profile?seconds=1', '/debug/heap?seconds=1', '/metrics'])
    assert.equal((await fetch(gateway.url + path, { headers })).status, 404, path)
  assert.equal((await fetch(`${gateway.adminUrl}/metrics`)).status, 200)
  assert.equal((await fetch(`${gateway.adminUrl}/debug/profile?seconds=1`)).status, 401)
  const taken = await fetch(`${gateway.adminUrl}/debug/profile?seconds=1`, { headers })
  assert.equal(taken.status, 200)
  const profile: unknown = await taken.json()
  assert.ok(typeof profile === 'object' && profile !== null && 'nodes' in profile && 'samples' in profile)
  const heap: unknown = await (await fetch(`${gateway.adminUrl}/debug/heap?seconds=1`, { headers })).json()
  assert.ok(typeof heap === 'object' && heap !== null && 'head' in heap)
})

const noLedgers = {
  of: () => assert.fail('a profile must not be recorded: it changes nothing'),
}

test('one profile runs at a time, within its limits', async (t) => {
  const clock = new TestClock()
  const admin = createAdmin({ ...tokenMode, env: { PLAT_ADMIN_TOKEN: TOKEN }, ledgers: noLedgers, log: silentLog })
  const own = { clock: systemClock, ids: systemIds(systemClock), log: silentLog }
  const api = (app: Parameters<typeof admin.mount>[0]) => admin.mount(app, [createProfiling(clock)])
  const listener = await listen({ ...own, address: '127.0.0.1:0', api })
  t.after(() => listener.close())
  const ask = async (path: string) => (await fetch(listener.url + path, { headers })).status
  for (const seconds of ['0', '61', '1.5', '-1', 'x']) {
    assert.equal(await ask(`/debug/profile?seconds=${seconds}`), 400, seconds)
  }
  const both = [ask('/debug/profile'), ask('/debug/heap?seconds=60')]
  assert.equal(await Promise.race(both), 409, 'the second request is refused while the first runs')
  const over = Promise.all(both)
  const turned = async () => {
    await clock.advance(60_000)
    return null
  }
  let statuses: number[] | null = null
  while (statuses === null) statuses = await Promise.race([over, turned()])
  assert.deepEqual(statuses.sort(), [200, 409])
})
