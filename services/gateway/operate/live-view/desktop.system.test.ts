import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plat/testkit/until'
import { missingDesktop, startDesktop } from './testing/desktop.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { pointerEvent, setEncodings } from './testing/messages.ts'
import { pixelOf } from './testing/pixel.ts'
import type { TestViewer } from './testing/viewer.ts'

/** Green until somebody presses a button of the pointer, then red. */
const PAGE = `data:text/html,<body style="margin:0;height:100vh;background:rgb(0,128,0)" onmousedown="document.body.style.background='rgb(200,0,0)'">`
const GREEN = [0, 128, 0]
const RED = [200, 0, 0]
const SIZE = { width: 640, height: 480 }
/** Where the pointer clicks, and where its picture does not hide the page. */
const POINT = { x: 600, y: 100 }
const SEEN = { x: 20, y: 20 }
/** Of who only watches. */
const CLICKS = 5
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

/** While the pointer moves, x11vnc does not look at the screen. */
async function clickSlowly(viewer: TestViewer): Promise<void> {
  viewer.send(...click())
  await sleep(1_000)
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
    until(async () => String(await pixelOf(viewer, { ...SIZE, ...SEEN })) === String(colour), `${colour}`)
  await shows(watching, GREEN)

  // A bubble of chromium may take the first click.
  for (let times = 0; times < CLICKS; times++) {
    await clickSlowly(watching)
    assert.deepEqual(await pixelOf(watching, { ...SIZE, ...SEEN }), GREEN)
  }

  const controlling = await view('control', { user: 'admin' })
  controlling.send(setEncodings(0, -223))
  await shows(controlling, GREEN)
  await until(
    async () => String(await pixelOf(controlling, { ...SIZE, ...SEEN })) === String(RED),
    'the click',
    () => clickSlowly(controlling),
  )
  await shows(watching, RED)

  await admin('POST', '/v1/revocations', { target: { session: SESSION } })
  assert.deepEqual([(await watching.closed).code, (await controlling.closed).code], [4007, 4007])
  assert.equal((await refused('watch')).status, 403)
  const ends = (await records(4)).filter(({ action }) => action === 'view.end')
  assert.partialDeepStrictEqual(
    ends.find(({ mode }) => mode === 'watch'),
    { inputs: 0, dropped: CLICKS * 3, result: 'session_ended' },
  )
  assert.partialDeepStrictEqual(
    ends.find(({ mode }) => mode === 'control'),
    { dropped: 0, result: 'session_ended' },
  )
})
