import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { watchPage } from './chromium.ts'
import type { TestConsole } from './gateway.ts'

/** A browser with one page, for one test alone. */
export interface Story {
  readonly page: Page
  open(path: string): Promise<void>
  /** Nothing ran, nothing was refused by the policy of the page, nothing was requested elsewhere, and nothing is wider than the window. */
  assertCalm(where: string): Promise<void>
}

interface StoryOptions extends BrowserContextOptions {
  /** Logs in at the identity provider; absent: by a link, with all roles. */
  readonly person?: string
}

/** Logs in with a new browser context, which is closed after the test; fails the test if a script failed or another host was requested. */
export async function openStory(
  t: TestContext,
  { plat, browser }: { readonly plat: TestConsole; readonly browser: Browser },
  { person, ...options }: StoryOptions = {},
): Promise<Story> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  const watched = watchPage(page, plat.origin)
  t.after(async () => {
    await context.close()
    assert.deepEqual(watched, { problems: [], foreign: [] })
  })
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
  for (let waits = 0; waits < 200; waits++) {
    const found = (await pendingOf(plat, session)).find((id) => !before.includes(id))
    if (found !== undefined) return `approvals/${found}`
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the call was not held')
}
