import type { Page } from 'playwright-core'

/** Pages of the identity provider that one login shows at most. */
const MAX_PAGES = 10

/**
 * Starts a login, for instance by a link, and passes the pages of the identity provider in whatever order it shows them, until the console is
 * displayed again. Never mistakes the page that the login started from for the one that it leads back to.
 */
export async function logIn(
  page: Page,
  provider: string,
  { person, start }: { readonly person: string; readonly start: () => Promise<void> },
): Promise<void> {
  await page.evaluate('document.documentElement.dataset.beforeLogin = ""')
  const anew = page.locator('html:not([data-before-login])')
  const form = anew.locator(`form[action^="${provider}/interaction/"]`)
  const submit = form.locator('button[type=submit]')
  const back = anew.getByRole('button', { name: 'Log out' })
  const failed = anew.getByText('The login did not succeed')
  await start()
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    await submit.or(back).or(failed).first().waitFor()
    if (await failed.isVisible()) throw new Error(`the login of ${person} failed: ${page.url()}`)
    if (!page.url().startsWith(provider)) return
    const action = await form.getAttribute('action')
    const name = form.locator('input[name=login]')
    if ((await name.count()) > 0) {
      await name.fill(person)
      await form.locator('input[name=password]').fill('any')
    }
    await submit.click()
    await page.locator(`form[action="${action}"]`).waitFor({ state: 'detached' })
  }
  throw new Error(`the identity provider showed more than ${MAX_PAGES} pages`)
}
