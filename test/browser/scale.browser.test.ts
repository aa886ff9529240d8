import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { openLedger } from '@plat/ledger'
import type { Page } from 'playwright-core'
import { longestTaskMs } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'
import { openStory, TIMEOUT } from './story.ts'

const SESSIONS = 10_000
const RECORDS = 100_000
/** The gateway lists at most 5,000 sessions of one agent. */
const AGENTS = 4
/** Records that wait for the disk at a time. */
const BATCH = 2_000
/** A list without further rows for so long does not go on, in milliseconds. */
const STALL_MS = 120_000
/** Elements of a page while a list of any length is scrolled. */
const ELEMENTS_MAX = 1_500

let plat: TestConsole

before(async () => {
  plat = await startConsole({ fill })
})

after(() => plat.close())

/** Records of calls, the last of which belong to different sessions. */
async function fill(path: string): Promise<void> {
  const ids = systemIds(systemClock)
  const ledger = await openLedger({ path, tenant: '', replica: 'test', clock: systemClock, ids })
  let appended: Promise<unknown>[] = []
  for (let at = 0; at < RECORDS; at++) {
    const session = at < RECORDS - SESSIONS ? 'old' : `session-${at}`
    const who = { namespace: 'default', agent: `agent-${at % AGENTS}`, session, user: `user-${at % 50}` }
    const what = { call: ids.uuid(), op: 'mcp.call', server: 'notes', tool: 'add_note' }
    appended.push(ledger.append({ kind: 'outcome', ...who, ...what, result: 'completed', status: 200, ms: 4 }))
    if (appended.length < BATCH) continue
    await Promise.all(appended)
    appended = []
  }
  await Promise.all(appended)
  await ledger.close()
}

interface Browsed {
  readonly rows: number
  /** The most elements that the page had. */
  readonly elements: number
  /** The longest time between two frames, in milliseconds; other load of the machine counts. */
  readonly longestFrame: number
  /** CPU time of the longest task of the page, in milliseconds; other load does not count. */
  readonly longestTask: number
}

/** Scrolls a list to its end, page by page, until it has loaded `rows`. */
async function browse(page: Page, rows: number): Promise<Browsed> {
  let browsed = { rows: 0, elements: 0, longestFrame: 0 }
  const longestTask = await longestTaskMs(page, async () => {
    browsed = await page.evaluate(`(async () => {
    const box = document.querySelector('.table-body')
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
    let [elements, longestFrame, rows, last] = [0, 0, 0, await frame()]
    let [loadedRows, loadedAt] = [0, last]
    while (rows < ${rows}) {
      box.scrollTop = box.scrollHeight
      const now = await frame()
      longestFrame = Math.max(longestFrame, now - last)
      last = now
      elements = Math.max(elements, document.querySelectorAll('*').length)
      rows = Number((document.querySelector('.table-foot').textContent.match(/[\\d,]+/) ?? ['0'])[0].replaceAll(',', ''))
      if (rows > loadedRows) [loadedRows, loadedAt] = [rows, now]
      if (now - loadedAt > ${STALL_MS}) throw new Error('no further rows: ' + [box.scrollTop, box.scrollHeight, box.clientHeight, box.firstElementChild.style.height, box.firstElementChild.lastElementChild.style.top, document.querySelector('.table-foot').innerText].join(' | '))
    }
    return { rows, elements, longestFrame: Math.round(longestFrame) }
  })()`)
  })
  return { ...browsed, longestTask }
}

test('10,000 sessions are browsed to the end, and searched, with few elements', TIMEOUT, async (t) => {
  const { page, open } = await openStory(t, plat)
  await open('sessions')
  await page.locator('.table-body .row').first().waitFor()
  const browsed = await browse(page, SESSIONS)
  t.diagnostic(JSON.stringify(browsed))
  assert.ok(browsed.rows >= SESSIONS && browsed.elements < ELEMENTS_MAX, JSON.stringify(browsed))
  await page.getByRole('searchbox').fill('session-99999')
  await page.getByText('1 row', { exact: true }).waitFor()
})

test('100,000 records are browsed to the end with few elements, and searched', TIMEOUT, async (t) => {
  const { page, open } = await openStory(t, plat)
  await open('ledger')
  await page.locator('.table-body .row').first().waitFor()
  const browsed = await browse(page, RECORDS)
  t.diagnostic(JSON.stringify(browsed))
  assert.ok(browsed.rows >= RECORDS && browsed.elements < ELEMENTS_MAX, JSON.stringify(browsed))
  await open('ledger?session=session-99999')
  await page.getByText('1 row', { exact: true }).waitFor()
})

test('the first page is interactive soon after it is opened, from few bytes', TIMEOUT, async (t) => {
  const { page, open } = await openStory(t, plat)
  await open('now')
  const bytes = Number(
    await page.evaluate(
      'performance.getEntriesByType("resource").filter(({ name }) => name.includes("/console/assets/")).reduce((sum, one) => sum + one.encodedBodySize, 0)',
    ),
  )
  const requests = Number(await page.evaluate('performance.getEntriesByType("resource").length'))
  await page.reload()
  await page.getByText('can be written').waitFor()
  const interactive = await page.evaluate('Math.round(performance.now())')
  t.diagnostic(`${bytes} bytes of files, ${requests} requests, all data displayed after ${interactive} ms`)
  assert.ok(bytes > 0 && bytes <= 150 * 1024, `${bytes} bytes`)
  assert.ok(requests <= 16, `${requests} requests`)
})
