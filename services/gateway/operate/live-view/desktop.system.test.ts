import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { missingDesktop, startDesktop } from './testing/desktop.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { pointerEvent, setEncodings } from './testing/messages.ts'
import { pixelOf } from './testing/pixel.ts'

/** Green until somebody presses a button of the pointer, then red. */
const PAGE = `data:text/html,<body style="margin:0;height:100vh;background:rgb(0,128,0)" onmousedown="document.body.style.background='rgb(200,0,0)'">`
const GREEN = [0, 128, 0]
const RED = [200, 0, 0]
const SIZE = { width: 640, height: 480 }
/** Where no bubble of chromium covers the page. */
const POINT = { x: 40, y: 420 }
const missing = missingDesktop()

/** A press and a release at the point. */
function click(): readonly Buffer[] {
  return [0, 1, 0].map((buttons) => {
    const message = pointerEvent(buttons)
    message.writeUInt16BE(POINT.x, 2)
    message.writeUInt16BE(POINT.y, 4)
    return message
  })
}

test('chromium on a screen of Debian is shown by x11vnc and websockify: watching changes nothing, control does, a revocation ends both', {
  skip: missing ?? false,
}, async (t) => {
  // Shows D2.agent.browser.liveView, D3.sessions.liveView.enabled, D3.sessions.liveView.endpointTemplate.
  const desktop = await startDesktop(PAGE)
  t.after(() => desktop.close())
  const endpointTemplate = `${desktop.url}/{session}`
  const { view, admin, records, refused } = await setUpViews(t, { liveView: { endpointTemplate } })
  const watching = await view('watch', { user: 'auditor' })
  watching.send(setEncodings(0, -223))
  const shows = (viewer: typeof watching, colour: readonly number[]) =>
    until(async () => String(await pixelOf(viewer, { ...SIZE, ...POINT })) === String(colour), `${colour}`)
  await shows(watching, GREEN)

  watching.send(...click(), ...click())
  // The server has read the clicks when it answers what came after them.
  for (let times = 0; times < 5; times++) assert.deepEqual(await pixelOf(watching, { ...SIZE, ...POINT }), GREEN)

  const controlling = await view('control', { user: 'admin' })
  controlling.send(setEncodings(0, -223))
  await shows(controlling, GREEN)
  controlling.send(...click())
  await shows(controlling, RED)
  await shows(watching, RED)

  await admin('POST', '/v1/revocations', { target: { session: SESSION } })
  assert.deepEqual([(await watching.closed).code, (await controlling.closed).code], [4007, 4007])
  assert.equal((await refused('watch')).status, 403)
  const ends = (await records(4)).filter(({ action }) => action === 'view.end')
  assert.partialDeepStrictEqual(
    ends.find(({ mode }) => mode === 'watch'),
    { inputs: 0, dropped: 6, result: 'session_ended' },
  )
  assert.partialDeepStrictEqual(
    ends.find(({ mode }) => mode === 'control'),
    { inputs: 3, dropped: 0, result: 'session_ended' },
  )
})
