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
  const told: string[] = []
  const log = {
    ...silentLog,
    info: (_: object, message: string) => void told.push(message),
    warn: (fields: object) => void told.push(JSON.stringify(fields)),
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
  /** What happens again and again happens as the clock goes on. */
  const soon = (holds: () => boolean, what: string) => until(holds, what, () => clock.advance(1000))
  return { server, clock, wanted, told, start, is, soon }
}

test('what should stand in the cluster is written, changed and deleted, and what others wrote is left alone', async (t) => {
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
  const writes = () => server.seen.filter((asked) => !asked.startsWith('GET')).length
  const before = writes()
  mirror.changed()
  wanted.push(one('c'))
  mirror.changed()
  await soon(() => is('c'), 'one more')
  assert.equal(writes(), before + 1, 'what is as it should be is not written again')
  assert.ok(server.get(pathOf('theirs')) !== undefined && server.get(pathOf('by-hand')) !== undefined)
})

test('nothing is lost while the API server is away: all of it follows, and it is told once', async (t) => {
  const { server, wanted, told, start, is, soon } = await setUp(t)
  wanted.push(one('gone'))
  const { mirror } = start()
  await soon(() => is('gone'), 'the first')
  server.faults.push({ request: /./, status: 503, reason: 'ServiceUnavailable' })
  wanted.splice(0, 1, one('a'))
  mirror.changed()
  const tried = () => server.seen.filter((asked) => asked === `DELETE ${pathOf('gone')}`).length
  await soon(() => tried() >= 3, 'it is tried again, and not only once a minute')
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /ServiceUnavailable/)
  wanted.push(one('b'))
  server.faults.length = 0
  await soon(() => is('a') && is('b') && !is('gone'), 'what happened meanwhile')
  await soon(() => told.length === 2, 'that it is over')
  assert.match(told[1] ?? '', /written again/)
})

test('what a process before left, and what others changed or deleted, is put right', async (t) => {
  const { server, wanted, start, is, soon } = await setUp(t)
  wanted.push(one('a'), one('b'))
  const first = start()
  await soon(() => is('a') && is('b'), 'both')
  first.stop.abort()
  await first.ended
  wanted.shift()
  start()
  await soon(() => !is('a'), 'what was lifted while nobody was there')
  server.remove(pathOf('b'))
  await soon(() => is('b'), 'what somebody deleted')
  server.put(pathOf('b'), { ...server.get(pathOf('b')), spec: { mode: 'suspend' } })
  await soon(() => is('b'), 'what somebody changed')
})

test('an object that the API server does not take keeps no other from being written or deleted', async (t) => {
  const { server, wanted, told, start, is, soon } = await setUp(t)
  server.faults.push({ request: /agentrevocations\/bad$/, status: 422, reason: 'Invalid' })
  wanted.push(one('old'))
  const { mirror } = start()
  await soon(() => is('old'), 'the first')
  wanted.splice(0, 1, one('bad'), one('good'))
  mirror.changed()
  await soon(() => is('good') && !is('old'), 'the others')
  await soon(() => told.length === 1, 'that one is refused')
  assert.match(told[0] ?? '', /1 not written: .*agentrevocations\/bad: Invalid/)
  server.faults.length = 0
  await soon(() => is('bad'), 'the refused one')
})

test('whoever writes copies again after another did asks first what stands there', async (t) => {
  const { server, wanted, start, is } = await setUp(t)
  wanted.push(one('a'))
  const { mirror, stop, ended } = start()
  await until(() => is('a'), 'the first')
  stop.abort()
  await ended
  server.remove(pathOf('a'))
  const again = new AbortController()
  const running = mirror.run(again.signal)
  await until(() => is('a'), 'what another took away')
  again.abort()
  await running
})
