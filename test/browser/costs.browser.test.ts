import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { startConsole, type TestConsole } from './gateway.ts'
import { openStory, TIMEOUT, waitForOutcomes } from './story.ts'

const DAY_MS = 86_400_000

let plat: TestConsole

before(async () => {
  plat = await startConsole()
})

after(() => plat.close())

/** Texts of the cells of a row, without the graphics. */
async function cellsOf(page: Page, table: string, name: string): Promise<readonly string[]> {
  const rows = page.getByRole('table', { name: table }).getByRole('row')
  const row = rows.filter({ has: page.getByText(name, { exact: true }) })
  await row.waitFor()
  return row.getByRole('cell').allInnerTexts()
}

/** Today in UTC, such as `2026-11-28`. */
function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** The part of the UTC day that has passed. */
const shareOfDay = () => (Date.now() % DAY_MS) / DAY_MS

/** The forecast of a budget of which 7.20 EUR are spent, computed between two parts of the day; the page computes it once a minute. */
function assertForecast(text: string, from: number, to: number): void {
  // At the beginning of a day a forecast says nothing.
  const isBlank = text === '–' && from < 0.021
  const amount = Number.parseFloat(text.replaceAll(',', ''))
  const isRight = amount >= 7.19 / (to + 0.001) && amount <= 7.21 / (from - 0.002)
  assert.ok(isBlank || isRight, text)
}

test(
  'calls of models are added up by agent, group, user, model, route and day, with energy, a budget and its forecast, and for their session',
  TIMEOUT,
  async (t) => {
    plat.models.answers({ text: ['done'], usage: { prompt: 1_000_000, completion: 20_000 } })
    const calls = [
      { agent: 'analyst', session: 'report', user: 'uma', model: 'small-1', groups: ['research', 'staff'] },
      { agent: 'analyst', session: 'report', user: 'uma', model: 'large-1', groups: ['research'] },
      { agent: 'assistant', session: 'mail', user: 'otto', model: 'small-1' },
    ]
    const day = today()
    for (const call of calls) assert.equal((await plat.callModel(call)).status, 200)
    await waitForOutcomes(plat, 'report', 2)
    await waitForOutcomes(plat, 'mail')
    const { page, open } = await openStory(t, plat)
    const spentBy = async (group: string, name: string) => {
      await open(`costs?by=${group}`)
      return cellsOf(page, 'Spent', name)
    }
    // small-1: 1 + 0.2 EUR, large-1: 5 + 1 EUR; each 1,000 to 2,000 Wh for its prompt and 200 to 600 Wh for its response.
    const analyst = ['7.20 EUR', '', '2', '0', '2,000,000', '40,000', '2,400–5,200 Wh']
    const all = ['8.40 EUR', '', '3', '0', '3,000,000', '60,000', '3,600–7,800 Wh']
    assert.deepEqual(await spentBy('agent', 'default/analyst'), ['default/analyst', ...analyst])
    assert.deepEqual(await spentBy('user', 'uma'), ['uma', ...analyst])
    assert.deepEqual(await spentBy('group', 'research'), ['research', ...analyst])
    assert.equal((await spentBy('group', 'staff'))[1], '1.20 EUR')
    assert.equal((await spentBy('group', 'no group'))[1], '1.20 EUR')
    const small = ['small-1', '2.40 EUR', '', '2', '0', '2,000,000', '40,000', '2,400–5,200 Wh']
    assert.deepEqual(await spentBy('model', 'small-1'), small)
    assert.deepEqual(await spentBy('target', 'chat'), ['chat', ...all])
    assert.deepEqual(await spentBy('namespace', 'default'), ['default', ...all])
    const onDay = await spentBy('day', day)
    const [passedBefore, budget, passed] = [shareOfDay(), await cellsOf(page, 'Budgets', 'day'), shareOfDay()]
    t.diagnostic(budget.join(' | '))
    // The calls of a run at midnight belong to two days.
    if (day === today()) {
      assert.deepEqual(onDay, [day, ...all])
      assert.deepEqual([budget[1], budget[2], budget[3], budget[6]], ['day', '36 %', '7.20 EUR', '12.80 EUR'])
      assertForecast(budget[5] ?? '', passedBefore, passed)
    }
    await open('sessions/default%2Fanalyst%2Freport')
    await page.getByRole('row', { name: /completed.*chat · large-1.*6\.00 EUR/ }).waitFor()
    const money = ['chat', '7.20 EUR', '2', '2,000,000', '40,000', '2,400–5,200 Wh']
    assert.deepEqual(await cellsOf(page, 'Costs of the session', 'chat'), money)
  },
)
