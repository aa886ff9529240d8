import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { axeViolations } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'
import { openStory, TIMEOUT, waitForOutcomes } from './story.ts'

const CARD = '4111 1111 1111 1111'
const IBAN = 'DE89 3704 0044 0532 0130 00'
const PHONE = { width: 360, height: 740 }

let plat: TestConsole

before(async () => {
  plat = await startConsole({
    additions: () => ({ gateway: { dlpProfiles: { standard: {} }, dlp: { defaultProfile: 'standard' } } }),
  })
})

after(() => plat.close())

test(
  'the timeline of a session has its model turns, calls, redactions, approvals, refusals and costs, and the records prove them',
  TIMEOUT,
  async (t) => {
    const [session, user] = ['whole', 'uma']
    plat.models.answers({ text: [`Pay to ${IBAN}.`], usage: { prompt: 1_000_000, completion: 20_000 } })
    const content = `My cards are ${CARD} and 5555 5555 5555 4444.`
    const turn = await plat.callModel({ agent: 'assistant', session, user, model: 'small-1', content })
    assert.match(turn.text, /REDACTED:iban/)
    const noted = await plat.callTool({ session, tool: 'add_note', args: { name: 'a', text: CARD } })
    assert.match(noted, /Added/)
    assert.match(await plat.callTool({ session, tool: 'read_note', args: { name: 'a' } }), /notes are not read/)
    const deleted = plat.callTool({ session, tool: 'delete_note', args: { name: 'a' } })
    const { page, open, assertCalm } = await openStory(t, plat)
    await open(`approvals?session=${session}`)
    await page.getByRole('link', { name: 'notes/delete_note' }).click()
    await page.getByRole('button', { name: 'Approve a' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click()
    assert.match(await deleted, /Deleted/)
    await waitForOutcomes(plat, session, 3)

    await open(`sessions/default%2Fassistant%2F${session}`)
    const rows = page.getByRole('table', { name: 'Timeline' }).getByRole('row')
    const row = (...texts: readonly string[]) =>
      texts.reduce((found, text) => found.filter({ has: page.getByText(text, { exact: true }) }), rows)
    await row('completed', 'chat · small-1', '1.20 EUR').waitFor()
    await row('redacted', 'chat · small-1', 'arguments: 2 credit_card').waitFor()
    await row('redacted', 'chat · small-1', 'response: 1 iban').waitFor()
    await row('completed', 'notes/add_note').waitFor()
    await row('redacted', 'notes/add_note', 'arguments: 1 credit_card').waitFor()
    await row('denied', 'notes/read_note').waitFor()
    for (const state of ['approval created', 'approval granted', 'approval used', 'completed'])
      await row(state, 'notes/delete_note').waitFor()
    assert.equal(await rows.filter({ hasText: 'redacted' }).count(), 3)
    assert.deepEqual(await axeViolations(page), [])
    await assertCalm('the timeline')
    await page.setViewportSize(PHONE)
    assert.deepEqual(await axeViolations(page), [])
    await assertCalm('the timeline on a phone')
    await page.setViewportSize({ width: 1280, height: 800 })

    // The row of a redaction leads to the record that states it, with its proof.
    await row('redacted', 'response: 1 iban').getByRole('link').last().click()
    await page.getByText('proven in this browser').waitFor()
    const facts = page.locator('main p').filter({ hasText: /redacted/ })
    assert.deepEqual(await facts.allInnerTexts(), [
      'redacted in the arguments: 2 credit_card',
      'redacted in the response: 1 iban',
    ])
    const text = await page.locator('main').innerText()
    for (const secret of [CARD, CARD.replaceAll(' ', ''), IBAN]) assert.ok(!text.includes(secret))
    await assertCalm('the record')
  },
)
