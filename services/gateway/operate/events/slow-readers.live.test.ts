import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { listen } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { createAdmin } from '../../admin/index.ts'
import { inNamespaces } from '../../testing/admin.ts'
import { EventFeed } from './feed.ts'
import { createEventRoutes } from './routes.ts'
import { readEvents } from './testing/reader.ts'

const head = { seq: 1, hash: '' }
const ledgers: Ledgers = {
  of: () => ({ append: async () => head, enter() {}, head: () => head, health: 'ok', close: async () => {} }),
}

/** The route with its feed on a listener; `emit` adds events of 1 KB. */
async function setUp(t: TestContext) {
  const clock = systemClock
  const ids = systemIds(clock)
  const feed = new EventFeed({ clock, ids, problems: () => [] })
  const admin = createAdmin({
    ...inNamespaces({ shop: { viewer: ['user:vic', 'user:ada'] } }),
    env: {},
    ledgers,
    log: silentLog,
  })
  const routes = createEventRoutes({ feed, sessions: null, clock })
  const api: Parameters<typeof listen>[0]['api'] = (app) => admin.mount(app, [routes])
  const listener = await listen({ address: '127.0.0.1:0', clock, ids, log: silentLog, api })
  t.after(async () => {
    feed.close()
    await listener.close()
  })
  let count = 0
  const emit = (events: number) => {
    for (let at = 0; at < events; at++)
      feed.add({ type: 'pin.drift', namespace: 'shop', data: { number: ++count, text: 'x'.repeat(1_000) } })
  }
  const follow = async (user: string, more: Record<string, string> = {}) => {
    const stream = await readEvents(listener.url, { authorization: `Bearer ${user}`, ...more })
    t.after(() => stream.close())
    return stream
  }
  return { url: listener.url, emit, follow }
}

test('a reader that missed more than may wait for it starts over, and is not cut off again and again', async (t) => {
  const { emit, follow } = await setUp(t)
  const first = await follow('vic')
  emit(1)
  const { id } = await first.first('pin.drift')
  first.close()
  emit(1_000)
  const resumed = await follow('vic', { 'last-event-id': id })
  const reset = await resumed.first('reset')
  emit(1)
  assert.equal((await resumed.first('pin.drift')).data.number, 1_002)
  resumed.close()
  const again = await follow('vic', { 'last-event-id': reset.id })
  assert.equal((await again.first('pin.drift')).data.number, 1_002)
  assert.deepEqual([resumed.events.length, again.events.length], [2, 1])
})

test('a reader that does not read is cut off, others are served meanwhile, and it resumes or starts over', async (t) => {
  const { url, emit, follow } = await setUp(t)
  const other = await follow('ada')
  const stalled = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => stalled.destroy())
  let text = ''
  stalled.on('data', (chunk) => {
    text += chunk
  })
  stalled.on('error', () => {})
  stalled.write('GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer vic\r\n\r\n')
  await until(() => text.includes('event: open'), 'the stream')
  stalled.pause()
  const sent = 20_000
  for (let at = 0; at < sent; at += 100) {
    emit(100)
    await until(() => other.events.at(-1)?.data.number === at + 100, 'the events of the other reader')
  }
  stalled.resume()
  await once(stalled, 'close')
  assert.ok((text.match(/^event: pin\.drift$/gm) ?? []).length < sent, 'what waited for it is bounded')
  const last = [...text.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? ''
  const resumed = await follow('vic', { 'last-event-id': last })
  await resumed.first('reset')
})
