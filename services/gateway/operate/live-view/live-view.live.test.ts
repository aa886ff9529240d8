import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { keyFiles } from '../../evidence/audit/testing/keys.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { cutText, keyEvent, pointerEvent, qemuKeyEvent, setEncodings, updateRequest } from './testing/messages.ts'

/** Bytes of the handshake that a viewer receives: version, types, result, screen, and the name `s1`. */
const HANDSHAKE_BYTES = 12 + 2 + 4 + 24 + 2
/** Of an update with the whole screen. */
const UPDATE_BYTES = 16 + 4 * 4 * 4

const INPUT = [keyEvent(), pointerEvent(), cutText('pasted'), qemuKeyEvent()]

test('a viewer sees the screen of the sandbox, and none of its input arrives there', async (t) => {
  // Shows D3.sessions.liveView.enabled, D3.sessions.liveView.endpointTemplate.
  const { rfb, view } = await setUpViews(t)
  const viewer = await view('watch')
  viewer.send(...INPUT, setEncodings(7, -316, 16), ...INPUT, updateRequest())
  await until(() => viewer.received().length === HANDSHAKE_BYTES + UPDATE_BYTES, 'the screen')
  assert.deepEqual(rfb.problems, [])
  assert.deepEqual(
    rfb.messages.map(({ bytes }) => bytes),
    [setEncodings(16), updateRequest()],
  )
  assert.deepEqual([rfb.opened[0]?.path, rfb.shared], ['/default/s1/websockify', [1]])
})

test('a viewer in control sends keys, the pointer and text', async (t) => {
  const { rfb, view } = await setUpViews(t)
  const viewer = await view('control')
  viewer.send(...INPUT, updateRequest())
  await until(() => rfb.messages.length === INPUT.length + 1, 'the input')
  assert.deepEqual(
    rfb.messages.map(({ bytes }) => bytes),
    [...INPUT, updateRequest()],
  )
})

test('nothing of the viewer but its messages reaches the sandbox', async (t) => {
  const { rfb, view } = await setUpViews(t)
  const headers = { cookie: 'a=secret', 'x-forwarded-for': '1.2.3.4', 'user-agent': 'mine' }
  await view('watch', { headers })
  const sent = rfb.opened[0]?.headers ?? assert.fail()
  assert.deepEqual(Object.keys(sent).sort(), [
    'connection',
    'host',
    'sec-websocket-key',
    'sec-websocket-version',
    'upgrade',
  ])
})

test('each view leaves a record at its begin and its end, in the timeline and in evidence of the session', async (t) => {
  const config = { auditCheckpointKey: (await keyFiles()).uri }
  const { rfb, view, records, admin } = await setUpViews(t, { config })
  const viewer = await view('control', { user: 'admin' })
  viewer.send(pointerEvent(), updateRequest())
  await until(() => rfb.messages.length === 2, 'the messages')
  await until(() => viewer.received().length === HANDSHAKE_BYTES + UPDATE_BYTES, 'the screen')
  const [begin] = await records(1)
  const names = { namespace: 'default', agent: 'assistant', session: 's1', mode: 'control', by: 'user:admin' }
  assert.partialDeepStrictEqual(begin, { kind: 'admin', action: 'view.begin', ...names })
  viewer.socket.close()
  const [, end] = await records(2)
  const counts = { bytesIn: 16, bytesOut: UPDATE_BYTES, inputs: 1, dropped: 0 }
  assert.partialDeepStrictEqual(end, { action: 'view.end', result: 'closed', view: begin?.view, ...names, ...counts })
  assert.equal(typeof end?.ms, 'number')
  const { items } = (await admin('GET', `/v1/sessions/${encodeURIComponent(SESSION)}/timeline`)).body
  const actions = items.map(({ rec }: { rec: { action?: string } }) => rec.action)
  assert.deepEqual(actions.slice(-2), ['view.begin', 'view.end'])
  const evidence = await admin('POST', '/v1/evidence', { namespace: 'default', session: 's1', kind: 'admin' })
  assert.deepEqual([evidence.status, evidence.body.records], [201, 2])
})

test('a viewer that watches is counted with what it tried', async (t) => {
  const { rfb, view, records } = await setUpViews(t)
  const viewer = await view('watch', { user: 'auditor' })
  viewer.send(...INPUT, updateRequest())
  await until(() => rfb.messages.length === 1, 'the request')
  viewer.socket.close()
  const [, end] = await records(2)
  assert.partialDeepStrictEqual(end, { mode: 'watch', inputs: 0, dropped: INPUT.length, by: 'user:auditor' })
})

test('only who may see a session views it, and control needs a role that watching does not', async (t) => {
  const { refused, view, rfb, records } = await setUpViews(t)
  assert.deepEqual(await refused('watch', { user: 'viewer' }), { status: 403, error: 'forbidden' })
  assert.deepEqual(await refused('watch', { user: 'nobody' }), { status: 403, error: 'forbidden' })
  assert.deepEqual(await refused('watch', { user: 'there' }), { status: 404, error: 'not_found' })
  assert.deepEqual(await refused('control', { user: 'there' }), { status: 404, error: 'not_found' })
  assert.deepEqual(await refused('control', { user: 'auditor' }), { status: 403, error: 'forbidden' })
  assert.deepEqual(await refused('control', { user: 'here' }), { status: 403, error: 'forbidden' })
  const bad = { headers: { authorization: 'Bearer x' } }
  assert.deepEqual(await refused('watch', bad), { status: 401, error: 'unauthenticated' })
  assert.equal(rfb.opened.length, 0)
  for (const [mode, user] of [
    ['watch', 'auditor'],
    ['watch', 'here'],
    ['watch', 'admin'],
    ['control', 'admin'],
  ] as const) {
    const viewer = await view(mode, { user })
    viewer.socket.close()
  }
  assert.equal((await records(8)).length, 8)
})

test('a session that is unknown, named otherwise, or leads to no sandbox is not viewed', async (t) => {
  const dotted = 'default/assistant/s.evil'
  const { refused, rfb } = await setUpViews(t, { sessions: [SESSION, dotted] })
  assert.deepEqual(await refused('watch', { session: 'default/assistant/s2' }), { status: 404, error: 'not_found' })
  assert.deepEqual(await refused('watch', { session: 'shop/assistant/s1' }), { status: 404, error: 'not_found' })
  assert.deepEqual(await refused('watch', { session: 'default/other/s1' }), { status: 404, error: 'not_found' })
  assert.deepEqual(await refused('watch', { session: dotted }), { status: 404, error: 'unknown_session' })
  assert.deepEqual(await refused('watch', { session: 's1' }), { status: 400, error: 'invalid_request' })
  assert.equal(rfb.opened.length, 0)
})

test('step-up applies to watching and to control, each as configured', async (t) => {
  const stepUp = { view: { maxAgeSeconds: 60 }, control: { amr: ['hwk'] } }
  const { refused, view, people } = await setUpViews(t, { stepUp })
  const stale = { auth_time: people.now() - 600, amr: ['pwd'] }
  const fresh = { auth_time: people.now(), amr: ['pwd'] }
  const step = { status: 403, error: 'step_up_required' }
  assert.deepEqual(await refused('watch', { user: 'admin', claims: stale }), step)
  assert.deepEqual(await refused('control', { user: 'admin', claims: fresh }), step)
  await view('watch', { user: 'admin', claims: fresh })
  await view('control', { user: 'admin', claims: { ...stale, amr: ['hwk'] } })
})

test('without an upgrade the route returns whether the view may begin, and makes no view', async (t) => {
  const { gateway, bearer, rfb, records } = await setUpViews(t)
  const get = async (path: string, user: string | null, headers = {}) => {
    const url = `${gateway.adminUrl}/v1/sessions/${encodeURIComponent(SESSION)}/view/${path}`
    const response = await fetch(url, { headers: { authorization: await bearer(user), ...headers } })
    return [response.status, await response.json()]
  }
  assert.deepEqual(await get('control', null), [200, { mode: 'control', protocol: 'rfb' }])
  assert.equal((await get('control', 'auditor'))[0], 403)
  assert.equal((await records(0)).length, 0)
  assert.equal(rfb.opened.length, 0)
})

test('while liveView is off there is no view', async (t) => {
  const { refused, admin, rfb } = await setUpViews(t, { liveView: { enabled: false } })
  assert.equal((await refused('watch')).status, 404)
  const { items } = (await admin('GET', '/v1/sessions')).body
  assert.deepEqual(items[0].views, [])
  assert.equal(rfb.opened.length, 0)
})

test('the list of sessions has the ways in which the caller may view each', async (t) => {
  const { gateway, bearer, admin } = await setUpViews(t, { sessions: [SESSION, 'default/assistant/s.2'] })
  const views = async (user: string) => {
    const headers = { authorization: await bearer(user) }
    const text = await (await fetch(`${gateway.adminUrl}/v1/sessions`, { headers })).text()
    const { items } = JSON.parse(text)
    return Object.fromEntries(items.map((one: { session: string; views: unknown }) => [one.session, one.views]))
  }
  assert.deepEqual(await views('admin'), { s1: ['watch', 'control'], 's.2': [] })
  assert.deepEqual(await views('auditor'), { s1: ['watch'], 's.2': [] })
  assert.deepEqual(await views('viewer'), { s1: [], 's.2': [] })
  await admin('POST', '/v1/revocations', { target: { session: SESSION } })
  assert.deepEqual(await views('admin'), { s1: [], 's.2': [] })
})
