import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import type { Browser, Page } from 'playwright-core'
import { axeViolations, startBrowser, type Watched, watchPage } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'

/** The pictures of docs/console.md are written with `-draw` alone, so that a run changes no file. */
const SCREENSHOTS =
  process.env.PLAT_DRAW_CONSOLE === '1' ? join(import.meta.dirname, '../../docs/console') : tempFolder()
const MARKUP = '<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"\'><svg onload=window.hacked=1>'
const HIDDEN = 'pay\u202eevil\u2066\u200b\u{e0041}'
const PAGES = ['now', 'approvals', 'sessions', 'ledger', 'costs', 'policy', 'servers', 'access'] as const

let plat: TestConsole
let browser: Browser
let page: Page
let watched: Watched
const stop = new AbortController()

before(async () => {
  ;[plat, browser] = await Promise.all([startConsole(), startBrowser()])
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  watched = watchPage(page, plat.origin)
  await plat.logInByLink(page)
  await plat.callTool({ session: 'quarter-report', tool: 'add_note', args: { name: 'draft', text: 'numbers' } })
  await plat.callTool({ session: 'quarter-report', tool: 'read_note', args: { name: 'draft' } })
})

after(async () => {
  stop.abort()
  await browser.close()
  await plat.close()
})

const open = (path: string) => page.goto(`${plat.origin}/console/${path}`)

/** Holds a call until the file ends; returns the address of its approval. */
async function held(args: object, user = 'uma', session = 'quarter-report'): Promise<string> {
  const before = await pending()
  void plat.callTool({ session, tool: 'delete_note', args, user, signal: stop.signal }).catch(() => '')
  for (let waits = 0; waits < 200; waits++) {
    const found = (await pending()).find((id) => !before.includes(id))
    if (found !== undefined) return `approvals/${found}`
    await page.waitForTimeout(50)
  }
  throw new Error('the call was not held')
}

async function pending(): Promise<readonly string[]> {
  const text = await (await plat.admin('GET', '/v1/approvals?state=pending')).text()
  const { items }: { readonly items: readonly { readonly id: string }[] } = JSON.parse(text)
  return items.map(({ id }) => id)
}

/** Nothing ran, nothing was refused by the policy of the page, and nothing is wider than the window. */
async function assertCalm(where: string): Promise<void> {
  assert.equal(await page.evaluate('window.hacked'), undefined, where)
  assert.equal(await page.locator('main script, main img, main svg').count(), 0, where)
  assert.ok(
    await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
    `${where}: wider than the window`,
  )
  assert.deepEqual(watched, { problems: [], foreign: [] }, where)
}

test('every page is drawn in both themes and on a phone, for docs/console.md', async () => {
  await mkdir(SCREENSHOTS, { recursive: true })
  await held({ name: 'budget-2027', reason: 'superseded' })
  const approval = await held({ name: 'draft', force: true })
  const session = 'sessions/default%2Fassistant%2Fquarter-report'
  const named = { ...Object.fromEntries(PAGES.map((name) => [name, name])), approval, session, record: 'ledger/1' }
  for (const theme of ['light', 'dark']) {
    for (const [name, path] of Object.entries(named)) {
      await open(path)
      await page.getByLabel('Theme').selectOption(theme)
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${theme}.png`) })
    }
  }
  await page.setViewportSize({ width: 360, height: 740 })
  for (const [name, path] of Object.entries({ approvals: 'approvals', approval, session, now: 'now' })) {
    await open(path)
    await page.getByText('Loading …').first().waitFor({ state: 'detached' })
    await assertCalm(`${name} on a phone`)
    await page.screenshot({ path: join(SCREENSHOTS, `${name}-phone.png`) })
  }
  await open(approval)
  await page.getByRole('button', { name: 'Deny', exact: false }).first().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  assert.deepEqual(await axeViolations(page), [])
  await page.setViewportSize({ width: 1280, height: 800 })
})

test('markup, scripts and hidden characters in arguments, users and reasons are text', async () => {
  const path = await held({ name: MARKUP, [MARKUP]: HIDDEN }, `${MARKUP}${HIDDEN}`.slice(0, 120))
  for (const place of [
    path,
    'approvals',
    'now',
    'sessions',
    'sessions/default%2Fassistant%2Fquarter-report',
    'ledger',
    'costs?by=user',
  ]) {
    await open(place)
    await page.getByText('Loading …').first().waitFor({ state: 'detached' })
    await assertCalm(place)
  }
  await open(path)
  await page.locator('.json .hidden-char', { hasText: 'U+202E' }).waitFor()
  await page.locator('.json .hidden-char', { hasText: 'U+E0041' }).waitFor()
  assert.doesNotMatch(await page.locator('main').innerText(), /[\u202e\u2066\u200b]/)
})

test('long arguments and many levels are displayed whole, with few elements', async () => {
  const deep = JSON.parse(`${'['.repeat(60)}1${']'.repeat(60)}`)
  for (const args of [{ name: 'x'.repeat(200_000) }, { name: 'deep', deep }]) {
    const path = await held(args, 'uma', `big-${Object.keys(args).length}`)
    await open(path)
    await page.locator('.json-line').first().waitFor()
    assert.ok(Number(await page.evaluate('document.querySelectorAll("*").length')) < 2_000)
    await assertCalm('large arguments')
  }
})
