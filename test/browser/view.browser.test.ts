import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type RfbServer, startRfbServer } from '@plat/testkit/rfb-server'
import { until } from '@plat/testkit/until'
import { axeViolations } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'
import { openStory, TIMEOUT, waitForOutcomes } from './story.ts'

const POINTER_EVENT = 5
const KEY_EVENT = 4
/** The grey of the screen's pixels. */
const GREY = 0x80
/** The middle of the screen, when it is drawn. */
const PIXEL = `(() => {
  const canvas = document.querySelector('.screen canvas')
  return canvas === null ? [] : [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data.slice(0, 3)]
})()`

let rfb: RfbServer
let plat: TestConsole

before(async () => {
  rfb = await startRfbServer({ name: '<img src=x onerror=alert(1)>' })
  const liveView = { enabled: true, endpointTemplate: `${rfb.url}/{session}` }
  plat = await startConsole({ additions: () => ({ gateway: { liveView } }) })
})

after(async () => {
  await plat.close()
  await rfb.close()
})

const inputs = () => rfb.messages.filter(({ type }) => type === POINTER_EVENT || type === KEY_EVENT)

test('the browser of a session is watched, controlled and cut in the console', TIMEOUT, async (t) => {
  const session = 'seen'
  await plat.callTool({ session, tool: 'add_note', args: { name: 'a', text: 'b' } })
  await waitForOutcomes(plat, session, 1)
  const { page, open, assertCalm } = await openStory(t, plat)
  await open(`sessions/default%2Fassistant%2F${session}`)
  const state = page.getByRole('status').filter({ hasText: /watching|in control|ended|Connecting/ })
  await page.getByRole('button', { name: 'Watch' }).click()
  await state.filter({ hasText: 'watching' }).waitFor()
  await until(async () => String(await page.evaluate(PIXEL)) === String([GREY, GREY, GREY]), 'the screen')
  const screen = page.locator('.screen')
  await screen.click()
  await page.keyboard.press('a')
  assert.deepEqual(await axeViolations(page), [])
  await assertCalm('watching')

  await page.getByRole('button', { name: 'Control …' }).click()
  await state.filter({ hasText: 'in control' }).waitFor()
  assert.deepEqual(inputs(), [], 'who only watched sent nothing')
  await screen.click()
  await until(() => inputs().some(({ type }) => type === POINTER_EVENT), 'the click')
  await page.keyboard.press('a')
  await until(() => inputs().some(({ type }) => type === KEY_EVENT), 'the key')
  assert.deepEqual(await axeViolations(page), [])
  await assertCalm('in control')

  const target = { session: `default/assistant/${session}` }
  assert.equal((await plat.admin('POST', '/v1/revocations', { target })).status, 201)
  await state.filter({ hasText: 'the session is revoked or has ended' }).waitFor()
  await until(() => rfb.viewers === 0, 'the end of the view')
  await page.getByRole('button', { name: 'Connect again' }).click()
  await page.getByText('the session is revoked, suspended or has ended').waitFor()
  assert.deepEqual(await axeViolations(page), [])
  await assertCalm('after the end')
  await page.getByRole('button', { name: 'Close the view' }).click()
  assert.equal(await page.locator('.screen').count(), 0)
})

test('who may not view a session is not offered to, and a sandbox without a view says so', TIMEOUT, async (t) => {
  const session = 'other'
  await plat.callTool({ session, tool: 'add_note', args: { name: 'a', text: 'b' } })
  await waitForOutcomes(plat, session, 1)
  const viewer = await openStory(t, plat, { person: 'vera' })
  await viewer.open(`sessions/default%2Fassistant%2F${session}`)
  await viewer.page.getByText('Summary').waitFor()
  assert.equal(await viewer.page.getByRole('button', { name: 'Watch' }).count(), 0)
  const { page, open } = await openStory(t, plat)
  await open(`sessions/default%2Fassistant%2F${session}`)
  await rfb.close()
  await page.getByRole('button', { name: 'Watch' }).click()
  await page.getByText('the sandbox cannot be reached').waitFor()
  assert.deepEqual(await axeViolations(page), [])
})
