import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable } from '@plat/core'
import { until } from '@plat/testkit/until'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { keyEvent } from './testing/messages.ts'

const OTHER = 'default/assistant/s2'
/** More than the buffers of all sides together can hold. */
const MUCH_BYTES = 64 * 1024 * 1024
const PIECE_BYTES = 512 * 1024
/** The longest ping (RFC 6455, section 5.5). */
const PING = 'x'.repeat(125)
const PINGS = Math.ceil(MUCH_BYTES / PING.length)
const PINGS_AT_ONCE = 1024
const LAST_PING = 'are you there'

test('a caller at its share of views, and a session at its, are refused while others are shown', async (t) => {
  const [ofSession, ofCaller] = poolTable.live_views.shares
  const callers = Array.from({ length: ofSession.max / ofCaller.max + 1 }, (_, at) => `a${at}`)
  const { view, refused } = await setUpViews(t, { sessions: [SESSION, OTHER], auditors: callers })
  const limited = { status: 429, error: 'rate_limited' }
  const [first = '', second = ''] = callers
  const last = callers.at(-1) ?? ''
  const fill = (user: string) => Promise.all(Array.from({ length: ofCaller.max }, () => view('watch', { user })))
  const [closing] = await fill(first)
  assert.deepEqual(await refused('watch', { user: first }), limited)
  assert.deepEqual(await refused('watch', { user: first, session: OTHER }), limited)
  for (const user of callers.slice(1, -1)) await fill(user)
  assert.deepEqual(await refused('watch', { user: last }), limited)
  await view('watch', { user: last, session: OTHER })
  assert.deepEqual(await refused('watch', { user: second, session: OTHER }), limited)
  closing?.socket.close()
  await until(() => view('watch', { user: last }).then(Boolean, () => false), 'the place of the view that was closed')
})

test('a viewer that does not read pauses the sandbox, and no byte is lost', async (t) => {
  const { view, rfb } = await setUpViews(t)
  const viewer = await view('watch')
  viewer.socket.pause()
  const progress = { sent: 0 }
  const sending = (async () => {
    while (progress.sent < MUCH_BYTES) {
      await rfb.send(Buffer.alloc(PIECE_BYTES, progress.sent / PIECE_BYTES))
      progress.sent += PIECE_BYTES
    }
  })()
  await stuck(() => progress.sent)
  assert.ok(progress.sent < MUCH_BYTES, `${progress.sent} bytes were read ahead`)
  let received = 0
  viewer.socket.removeAllListeners('message')
  viewer.socket.on('message', (data: Buffer) => {
    received += data.length
  })
  viewer.socket.resume()
  await sending
  await until(() => received === MUCH_BYTES, 'all bytes')
})

test('a sandbox that does not read pauses the viewer', async (t) => {
  const { view, rfb } = await setUpViews(t, { rfb: { stalls: true } })
  const viewer = await view('control')
  const piece = Buffer.concat(Array.from({ length: 4096 }, () => keyEvent()))
  const progress = { sent: 0 }
  void (async () => {
    while (progress.sent < MUCH_BYTES && viewer.socket.readyState === viewer.socket.OPEN) {
      await new Promise((resolve) => viewer.socket.send(piece, resolve))
      progress.sent += piece.length
    }
  })()
  await stuck(() => progress.sent)
  assert.ok(progress.sent < MUCH_BYTES, `${progress.sent} bytes were read ahead`)
  assert.equal(rfb.messages.length, 0)
})

test('pings of a viewer that does not read get no pongs that would wait in memory', async (t) => {
  const { view } = await setUpViews(t)
  const { socket } = await view('watch')
  let pongs = 0
  let hasAnswered = false
  socket.on('pong', (data) => {
    pongs++
    hasAnswered ||= String(data) === LAST_PING
  })
  socket.pause()
  for (let sent = 0; sent < PINGS; sent += PINGS_AT_ONCE) {
    for (let at = 1; at < PINGS_AT_ONCE; at++) socket.ping(PING)
    await new Promise((resolve) => socket.ping(PING, undefined, resolve))
  }
  // Whatever waited in the gateway arrives before the pong of a later ping.
  socket.resume()
  await until(
    () => hasAnswered,
    'a pong for who reads again',
    () => socket.ping(LAST_PING),
  )
  assert.ok(pongs < PINGS / 2, `${pongs} of ${PINGS} pongs were sent or kept`)
})

/** Resolves when a number has not changed for a while. */
async function stuck(now: () => number): Promise<void> {
  let [last, looks] = [-1, 0]
  await until(() => {
    looks = now() === last ? looks + 1 : 0
    last = now()
    return looks === 30
  }, 'the sender to be paused')
}
