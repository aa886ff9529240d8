import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { until } from '@plat/testkit/until'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { watchPage } from './chromium.ts'
import type { TestConsole } from './gateway.ts'

/** Of one story: many times what a machine with other work needs, so that only a story that does not go on fails. */
export const TIMEOUT = { timeout: 600_000 }
/** Of each wait for an element or a page, in milliseconds. */
const WAIT_MS = 120_000

const CUT_HEADERS = `[...document.querySelectorAll('[role=columnheader]')]
  .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ textContent }) => textContent)`

/** A browser with one page, for one test alone. */
export interface Story {
  readonly page: Page
  open(path: string): Promise<void>
  /** Nothing ran, nothing was refused by the policy of the page, nothing was requested elsewhere, nothing is wider than the window, and every column has room for its header. */
  assertCalm(where: string): Promise<void>
}

interface StoryOptions extends BrowserContextOptions {
  /** Logs in at the identity provider; absent: by a link, with all roles. */
  readonly person?: string
}

/** Opens a page without a login, in a new browser context, which is closed after the test. */
export async function openPage(t: TestContext, { browser }: TestConsole, options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(WAIT_MS)
  t.after(() => context.close())
  return context.newPage()
}

/** Logs in with a new browser context, which is closed after the test; fails the test if a script failed or another host was requested. */
export async function openStory(
  t: TestContext,
  plat: TestConsole,
  { person, ...options }: StoryOptions = {},
): Promise<Story> {
  const page = await openPage(t, plat, { viewport: { width: 1280, height: 800 }, ...options })
  const watched = watchPage(page, plat.origin)
  t.after(() => assert.deepEqual(watched, { problems: [], foreign: [] }))
  if (person === undefined) await plat.logInByLink(page)
  else {
    await page.goto(`${plat.origin}/console/`)
    await plat.logInAs(page, person)
  }
  return {
    page,
    async open(path) {
      await page.goto(`${plat.origin}/console/${path}`)
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
    },
    async assertCalm(where) {
      assert.equal(await page.evaluate('window.hacked'), undefined, where)
      assert.equal(await page.locator('main script, main img, main svg, main iframe').count(), 0, where)
      const widths = 'document.documentElement.scrollWidth - window.innerWidth'
      assert.ok(Number(await page.evaluate(widths)) <= 0, `${where}: wider than the window`)
      assert.deepEqual(await page.evaluate(CUT_HEADERS), [], `${where}: headers of columns that are cut off`)
      assert.deepEqual(watched, { problems: [], foreign: [] }, where)
    },
  }
}

/** IDs of approvals that are pending. */
export async function pendingOf(plat: TestConsole, session: string): Promise<readonly string[]> {
  const query = new URLSearchParams({ state: 'pending', session })
  const text = await (await plat.admin('GET', `/v1/approvals?${query}`)).text()
  const { items }: { readonly items: readonly { readonly id: string }[] } = JSON.parse(text)
  return items.map(({ id }) => id)
}

/** Holds a call until the test ends; returns the path of its approval. */
export async function holdCall(
  t: TestContext,
  plat: TestConsole,
  { session, args = {}, user = 'uma' }: { readonly session: string; readonly args?: object; readonly user?: string },
): Promise<string> {
  const stop = new AbortController()
  t.after(() => stop.abort())
  const before = await pendingOf(plat, session)
  void plat.callTool({ session, tool: 'delete_note', args, user, signal: stop.signal }).catch(() => '')
  let id: string | undefined
  await until(async () => {
    id = (await pendingOf(plat, session)).find((one) => !before.includes(one))
    return id !== undefined
  }, 'the call to be held')
  return `approvals/${id}`
}

/** Waits until the ledger has as many outcomes of a session: a call ends for its agent before its outcome is durable, and not every page reloads. */
export async function waitForOutcomes(plat: TestConsole, session: string, atLeast = 1): Promise<void> {
  const query = new URLSearchParams({ kind: 'outcome', session })
  const read = async () => JSON.parse(await (await plat.admin('GET', `/v1/audit/records?${query}`)).text())
  await until(async () => (await read()).items.length >= atLeast, `${atLeast} outcomes of the session ${session}`)
}
