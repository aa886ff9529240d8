import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KubernetesApi } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { until } from '@plat/testkit/until'
import { Mirror, type Mirrored } from './mirror.ts'

const API = '/apis/plat.dev/v1alpha1'
const pathOf = (name: string, namespace = 'team') => `${API}/namespaces/${namespace}/agentrevocations/${name}`
const one = (name: string, mode = 'revoke', namespace = 'team'): Mirrored => ({ namespace, name, spec: { mode } })

/** A mirror before a small API server. */
async function setUp(t: TestContext) {
  const server = new KubernetesApiServer()
  await server.start()
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  const access = { server: server.url, namespace: null, credentials: async () => ({ headers: {}, trust: {} }) }
  const api = new KubernetesApi({ access, dialer, clock: systemClock })
  const clock = new TestClock()
  const wanted: Mirrored[] = []
  const logged: string[] = []
  const log = {
    ...silentLog,
    info: (_: object, message: string) => void logged.push(message),
    warn: (fields: object) => void logged.push(JSON.stringify(fields)),
  }
  const running: { stop: AbortController; ended: Promise<void> }[] = []
  t.after(async () => {
    for (const { stop } of running) stop.abort()
    await Promise.all(running.map(({ ended }) => ended))
    await dialer.close()
    await server.stop()
  })
  const start = (owner = 'us') => {
    const parts = { api, kind: 'AgentRevocation', plural: 'agentrevocations', owner, clock, log }
    const mirror = new Mirror({ ...parts, wanted: () => wanted })
    const stop = new AbortController()
    const ended = mirror.run(stop.signal)
    running.push({ stop, ended })
    return { mirror, stop, ended }
  }
  const is = (name: string, mode = 'revoke') => Object(server.get(pathOf(name))?.spec).mode === mode
  /** Waits until `holds()`; each poll advances the clock, so that periodic tasks run. */
  const soon = (holds: () => boolean, what: string) => until(holds, what, () => clock.advance(1000))
  return { server, clock, wanted, logged, start, is, soon }
}

test('wanted objects are created, changed and deleted, and objects of others are left alone', async (t) => {
  const { server, wanted, start, is, soon } = await setUp(t)
  server.put(pathOf('theirs'), { metadata: { labels: { 'plat.dev/mirrored-by': 'them' } }, spec: {} })
  server.put(pathOf('by-hand'), { spec: {} })
  wanted.push(one('a'), one('b'))
  const { mirror } = start()
  await soon(() => is('a') && is('b'), 'both')
  assert.deepEqual(Object(server.get(pathOf('a'))?.metadata).labels, {
    'app.kubernetes.io/managed-by': 'plat-gateway',
    'plat.dev/mirrored-by': 'us',
  })
  wanted.splice(0, 2, one('a', 'suspend'))
  mirror.changed()
  await soon(() => is('a', 'suspend') && !is('b'), 'the change')
  const writes = () => server.seen.filter((request) => !request.startsWith('GET')).length
  const before = writes()
  mirror.changed()
  wanted.push(one('c'))
  mirror.changed()
  await soon(() => is('c'), 'one more')
  assert.equal(writes(), before + 1, 'an unchanged object is not written again')
  assert.ok(server.get(pathOf('theirs')) !== undefined && server.get(pathOf('by-hand')) !== undefined)
})

test('an outage of the API server loses no change, and is logged once', async (t) => {
  const { server, wanted, logged, start, is, soon } = await setUp(t)
  wanted.push(one('gone'))
  const { mirror } = start()
  await soon(() => is('gone'), 'the first')
  server.faults.push({ request: /./, status: 503, reason: 'ServiceUnavailable' })
  wanted.splice(0, 1, one('a'))
  mirror.changed()
  const tried = () => server.seen.filter((request) => request === `DELETE ${pathOf('gone')}`).length
  await soon(() => tried() >= 3, 'a retry, sooner than once a minute')
  assert.equal(logged.length, 1)
  assert.match(logged[0] ?? '', /ServiceUnavailable/)
  wanted.push(one('b'))
  server.faults.length = 0
  await soon(() => is('a') && is('b') && !is('gone'), 'the changes during the outage')
  await soon(() => logged.length === 2, 'the log line about the recovery')
  assert.match(logged[1] ?? '', /written again/)
})

test('leftovers of an earlier process, and changes and deletions by others, are repaired', async (t) => {
  const { server, wanted, start, is, soon } = await setUp(t)
  wanted.push(one('a'), one('b'))
  const first = start()
  await soon(() => is('a') && is('b'), 'both')
  first.stop.abort()
  await first.ended
  wanted.shift()
  start()
  await soon(() => !is('a'), 'the deletion of a copy lifted while no process ran')
  server.remove(pathOf('b'))
  await soon(() => is('b'), 'the deleted object')
  server.put(pathOf('b'), { ...server.get(pathOf('b')), spec: { mode: 'suspend' } })
  await soon(() => is('b'), 'the changed object')
})

test('an object that the API server rejects does not block the others', async (t) => {
  const { server, wanted, logged, start, is, soon } = await setUp(t)
  server.faults.push({ request: /agentrevocations\/bad$/, status: 422, reason: 'Invalid' })
  wanted.push(one('old'))
  const { mirror } = start()
  await soon(() => is('old'), 'the first')
  wanted.splice(0, 1, one('bad'), one('good'))
  mirror.changed()
  await soon(() => is('good') && !is('old'), 'the others')
  await soon(() => logged.length === 1, 'the log line about the refusal')
  assert.match(logged[0] ?? '', /1 not written: .*agentrevocations\/bad: Invalid/)
  server.faults.length = 0
  await soon(() => is('bad'), 'the refused one')
})

test('a new leader lists the cluster before it writes copies', async (t) => {
  const { server, wanted, start, is } = await setUp(t)
  wanted.push(one('a'))
  const { mirror, stop, ended } = start()
  await until(() => is('a'), 'the first')
  stop.abort()
  await ended
  server.remove(pathOf('a'))
  const again = new AbortController()
  const running = mirror.run(again.signal)
  await until(() => is('a'), 'the object deleted by another replica')
  again.abort()
  await running
})
