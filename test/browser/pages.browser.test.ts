import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { axeViolations, startBrowser, type Watched, watchPage } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'

const PAGES = ['now', 'approvals', 'sessions', 'ledger', 'costs', 'policy', 'servers', 'access']

let plat: TestConsole
let browser: Browser
let page: Page
let watched: Watched

before(async () => {
  ;[plat, browser] = await Promise.all([startConsole(), startBrowser()])
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  watched = watchPage(page, plat.origin)
  await plat.logInByLink(page)
})

after(async () => {
  await browser.close()
  await plat.close()
})

const open = (path: string) => page.goto(`${plat.origin}/console/${path}`)

test('a held call appears without a reload, is approved by keys, and passes', async () => {
  const added = await plat.callTool({ session: 'story', tool: 'add_note', args: { name: 'first', text: 'x' } })
  assert.match(added, /Added/)
  await open('approvals')
  await page.getByText('No call waits for a decision').waitFor()
  const call = plat.callTool({
    session: 'story',
    tool: 'delete_note',
    args: { name: 'first' },
  })
  const link = page.getByRole('link', { name: 'notes/delete_note' }).first()
  await link.click()
  await page.getByRole('heading', { name: 'delete_note of notes' }).waitFor()
  await page.getByText('deleting needs a second pair of eyes').waitFor()
  assert.deepEqual(await page.locator('.json-line').allInnerTexts(), ['{', '"name": "first"', '}'])
  await page.keyboard.press('a')
  await page.getByLabel('Reason').fill('looks right')
  await page.getByRole('button', { name: 'Approve', exact: true }).last().click()
  assert.match(await call, /Deleted \\"first/)
  await page.getByText('The call is approved').waitFor()
})

test('the next call of the tool shows what changed since the approved one, and a denial reaches the agent with its reason', async () => {
  const call = plat.callTool({
    session: 'story',
    tool: 'delete_note',
    args: { name: 'second' },
  })
  await open('approvals')
  await page.getByRole('link', { name: 'notes/delete_note' }).click()
  await page.locator('.json-line.removed', { hasText: '"first"' }).waitFor()
  await page.locator('.json-line.added', { hasText: '"second"' }).waitFor()
  await page.keyboard.press('d')
  await page.getByLabel('Reason').fill('not this one')
  await page.getByRole('button', { name: 'Deny', exact: true }).last().click()
  assert.match(await call, /not this one/)
})

test('people log in at the identity provider from a deep link: one without the role approver reads, one with it decides', async () => {
  const call = plat.callTool({ session: 'story', tool: 'delete_note', args: { name: 'third' } })
  await open('approvals')
  const address = await page.getByRole('link', { name: 'notes/delete_note' }).getAttribute('href')
  const [vera, ada] = [await (await browser.newContext()).newPage(), await (await browser.newContext()).newPage()]
  await vera.goto(plat.origin + address)
  await plat.logInAs(vera, 'vera')
  await vera.getByText('Deciding needs the role approver').waitFor()
  await vera.keyboard.press('a')
  assert.equal(await vera.getByRole('button', { name: /Approve|Deny/ }).count(), 0)
  assert.equal(await vera.getByRole('link', { name: 'Ledger' }).count(), 0, 'the page needs the role auditor')
  await ada.goto(plat.origin + address)
  await plat.logInAs(ada, 'ada')
  await ada.getByRole('button', { name: 'Deny d' }).click()
  await ada.getByRole('button', { name: 'Deny', exact: true }).last().click()
  await call
  await vera.getByText('user:ada').waitFor()
  await vera.context().close()
  await ada.context().close()
})

test('the timeline of a session has its calls, refusals and approvals, and a revocation ends its calls', async () => {
  await plat.callTool({ session: 'story', tool: 'read_note' })
  await open('sessions')
  await page.getByRole('link', { name: 'default/assistant/story' }).click()
  await page
    .getByRole('row', { name: /approval granted/ })
    .first()
    .waitFor()
  await page
    .getByRole('row', { name: /denied.*read_note/ })
    .first()
    .waitFor()
  const held = plat.callTool({ session: 'story', tool: 'delete_note', args: { name: 'cut' } })
  await page.getByText(/1$/).first().waitFor()
  await page.getByRole('button', { name: 'Revoke …' }).click()
  await page.getByRole('listitem').filter({ hasText: '1 pending approval' }).waitFor()
  await page.getByLabel('Reason').fill('the test ends it')
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  assert.match(await held, /revoked/)
  await page.getByText('the test ends it').first().waitFor()
  await page.getByRole('button', { name: 'Lift …' }).click()
  await page.getByRole('button', { name: 'Lift', exact: true }).click()
  await page.getByText('The revocation is lifted').waitFor()
})

test('a record is verified in the browser, and reached from the timeline', async () => {
  await open('sessions/default%2Fassistant%2Fstory')
  await page
    .getByRole('row', { name: /completed.*add_note/ })
    .getByRole('link')
    .last()
    .click()
  await page.getByText('proven in this browser').waitFor()
  assert.equal(await page.getByText('valid', { exact: true }).count(), 3)
  await open('ledger?text=add_note')
  await page
    .getByRole('row', { name: /add_note/ })
    .first()
    .waitFor()
})

test('edited policies are replayed against the calls of the last day', async () => {
  const rendered = JSON.parse(await readFile(join(plat.up.home.rendered, 'policies.json'), 'utf8'))
  const edited = JSON.stringify(rendered).replace('"name":"rest","action":"allow"', '"name":"rest","action":"deny"')
  await open('policy')
  await page.getByLabel('or its text').fill(edited)
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByRole('row', { name: /notes\/add_note.*allow.*deny/ }).waitFor()
  await page.getByText('Replayed.').waitFor()
})

test('costs, servers, access and the state of the last minutes are those of the gateway', async () => {
  await open('costs')
  await page.getByRole('row', { name: /default\/assistant/ }).waitFor()
  await open('now')
  await page.getByRole('link', { name: /Refusals/ }).waitFor()
  await open('servers')
  await page.getByRole('heading', { name: 'Servers', exact: true }).waitFor()
  await open('access')
  await page.getByRole('button', { name: 'Revoke …' }).click()
  await page.getByRole('combobox', { name: 'What' }).selectOption('agent')
  await page.getByLabel('<namespace>/<agent>').fill('default/other')
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('row', { name: /agent default\/other/ }).waitFor()
  await page.getByRole('button', { name: /Lift the revocation of agent default\/other/ }).click()
  await page.getByRole('button', { name: 'Lift', exact: true }).click()
  await page.getByText('No revocation is in force').waitFor()
})

test('axe-core finds nothing on any page, in both themes', async () => {
  const held = new AbortController()
  const call = plat
    .callTool({ session: 'axe', tool: 'delete_note', args: { a: 1 }, signal: held.signal })
    .catch(() => '')
  await open('approvals')
  const link = page.getByRole('link', { name: 'notes/delete_note' }).first()
  const approval = (await link.getAttribute('href'))?.replace('/console/', '') ?? ''
  for (const theme of ['light', 'dark']) {
    for (const path of [...PAGES, approval, 'sessions/default%2Fassistant%2Fstory', 'ledger/1', 'nothing']) {
      await open(path)
      await page.getByLabel('Theme').selectOption(theme)
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      assert.deepEqual(await axeViolations(page), [], `${path} ${theme}`)
    }
  }
  held.abort()
  await call
})

test('no script failed, nothing was refused by the content security policy, and no other host was requested', () => {
  assert.deepEqual(watched.problems, [])
  assert.deepEqual(watched.foreign, [])
})
