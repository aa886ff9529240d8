import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { TOKEN } from '../../testing/started.ts'
import { cookieOf, pageAt } from '../console/testing/page.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { pointerEvent, updateRequest } from './testing/messages.ts'
import { openViewer } from './testing/viewer.ts'

const targets = [
  { session: SESSION },
  { agent: 'default/assistant' },
  { namespace: 'default' },
  { user: 'ada' },
  { all: true },
]

for (const target of targets) {
  for (const mode of ['revoke', 'suspend']) {
    test(`a view ends at once when ${JSON.stringify(target)} is revoked with mode ${mode}, and no other begins`, async (t) => {
      const { view, refused, admin, records, noViewers } = await setUpViews(t)
      const viewer = await view('control')
      assert.equal((await admin('POST', '/v1/revocations', { target, mode })).status, 201)
      assert.deepEqual(await viewer.closed, { code: 4007, reason: 'the session is revoked or has ended' })
      await noViewers()
      assert.deepEqual(await refused('watch'), { status: 403, error: 'revoked' })
      assert.equal((await records(2))[1]?.result, 'session_ended')
    })
  }
}

test('a revocation of another session leaves a view open', async (t) => {
  const { view, admin, rfb } = await setUpViews(t)
  const viewer = await view('watch')
  for (const target of [
    { session: 'default/assistant/s2' },
    { session: 'shop/assistant/s1' },
    { agent: 'default/other' },
  ])
    await admin('POST', '/v1/revocations', { target })
  viewer.send(updateRequest())
  await until(() => rfb.messages.length === 1, 'the request')
  assert.equal(viewer.socket.readyState, viewer.socket.OPEN)
})

test('a view ends with the token of its viewer', async (t) => {
  const { view, people, records } = await setUpViews(t)
  // Tokens have 30 seconds of leeway.
  const viewer = await view('watch', { user: 'auditor', claims: { iat: people.now() - 60, exp: people.now() - 27 } })
  assert.equal((await viewer.closed).code, 4006)
  assert.equal((await records(2))[1]?.result, 'login_ended')
})

test('a page of the console views with its login, which ends the view when it ends', async (t) => {
  const { gateway, rfb } = await setUpViews(t)
  const page = pageAt(gateway.adminUrl)
  const { body } = await page('POST', '/v1/console/links', { headers: { authorization: `Bearer ${TOKEN}` } })
  const cookie = cookieOf(await page('POST', '/console/link', { body: { code: String(body.code) } }))
  const url = `${gateway.adminUrl}/v1/sessions/${encodeURIComponent(SESSION)}/view/control`
  const status = async (headers: Readonly<Record<string, string>>) => {
    const viewer = await openViewer(url, { cookie, ...headers })
    return 'status' in viewer ? viewer.status : assert.fail('the view was opened')
  }
  // A page of another origin makes the browser send the cookie, with the origin of that page.
  assert.equal(await status({ origin: 'https://evil.example' }), 403)
  assert.equal(await status({ origin: gateway.adminUrl, 'sec-fetch-site': 'cross-site' }), 403)
  assert.equal(await status({}), 403)
  assert.equal(await status({ origin: gateway.adminUrl, cookie: `${cookie.split('=')[0]}=${'A'.repeat(43)}` }), 401)
  assert.equal(rfb.opened.length, 0)
  const viewer = await openViewer(url, { cookie, origin: gateway.adminUrl })
  if (!('greet' in viewer)) assert.fail(JSON.stringify(viewer))
  await viewer.greet()
  const csrf = String((await page('GET', '/console/session', { cookie })).body.csrf)
  await page('POST', '/console/logout', { cookie, csrf })
  assert.equal((await viewer.closed).code, 4006)
})

test('a view ends when nothing moves, and when it was open for the longest time', async (t) => {
  const idle = await setUpViews(t, { liveView: { idleSeconds: 1 } })
  assert.equal((await (await idle.view('watch')).closed).code, 4004)
  const limited = await setUpViews(t, { liveView: { maxSeconds: 1 } })
  const viewer = await limited.view('watch')
  const requesting = setInterval(() => viewer.send(updateRequest()), 50)
  t.after(() => clearInterval(requesting))
  assert.equal((await viewer.closed).code, 4005)
})

test('a view ends when the gateway stops', async (t) => {
  const { view, gateway } = await setUpViews(t)
  const viewer = await view('watch')
  await gateway.drain()
  assert.equal((await viewer.closed).code, 4008)
})

test('a view ends when the sandbox closes it, is not there, or is no view', async (t) => {
  const { view, rfb } = await setUpViews(t)
  const viewer = await view('watch')
  rfb.drop()
  assert.equal((await viewer.closed).code, 4000)
  const closeOf = async (options: Parameters<typeof setUpViews>[1]) => {
    const { open } = await setUpViews(t, options)
    const opened = await open('watch')
    return 'closed' in opened ? (await opened.closed).code : assert.fail(JSON.stringify(opened))
  }
  assert.equal(await closeOf({ liveView: { endpointTemplate: 'http://127.0.0.1:9/{session}' } }), 4001)
  assert.equal(await closeOf({ rfb: { hello: Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n') } }), 4002)
  assert.equal(await closeOf({ rfb: { hello: Buffer.from('SSH-2.0-x\r\n\r\n') } }), 4002)
  assert.equal(await closeOf({ rfb: { security: [2, 16] } }), 4002)
  assert.equal(await closeOf({ rfb: { security: [] } }), 4002)
  assert.equal(await closeOf({ rfb: { name: 'x'.repeat(5000) } }), 4002)
})

test('every version of the protocol is spoken with sandboxes', async (t) => {
  for (const version of ['003.003', '003.007', '003.008', '003.889', '004.001']) {
    const { view, rfb } = await setUpViews(t, { rfb: { version } })
    const viewer = await view('watch')
    viewer.send(updateRequest())
    await until(() => rfb.messages.length === 1, version)
  }
})

test('a viewer that does not speak the protocol is closed, and nothing of it is forwarded', async (t) => {
  const { open, view, rfb } = await setUpViews(t)
  const early = await open('watch')
  if (!('greet' in early)) assert.fail()
  early.send(Buffer.concat([pointerEvent(), pointerEvent(), pointerEvent()]))
  assert.equal((await early.closed).code, 4003)
  const unknown = await view('control')
  unknown.send(Buffer.from([250, 0, 1, 2]))
  assert.equal((await unknown.closed).code, 4003)
  const text = await view('control')
  text.socket.send('text')
  assert.equal((await text.closed).code, 4003)
  const long = await view('control')
  long.socket.send(Buffer.alloc(64 * 1024 + 1))
  assert.ok([1009, 4003].includes((await long.closed).code))
  assert.deepEqual([rfb.messages, rfb.problems], [[], []])
})

test('a viewer that sends the handshake and its messages at once is served like any other', async (t) => {
  const { open, rfb } = await setUpViews(t)
  const viewer = await open('watch')
  if (!('greet' in viewer)) assert.fail()
  const handshake = Buffer.concat([Buffer.from('RFB 003.008\n'), Buffer.from([1, 0])])
  viewer.send(Buffer.concat([handshake, pointerEvent(), updateRequest()]))
  await until(() => rfb.messages.length === 1, 'the request')
  assert.deepEqual(rfb.messages[0]?.bytes, updateRequest())
  // Whether the screen is shared is the gateway's choice: this viewer would have ended all others.
  assert.deepEqual(rfb.shared, [1])
})
