import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startConsole, type TestConsole } from './gateway.ts'
import { holdCall, openStory, type Story, TIMEOUT, waitForOutcomes } from './story.ts'

const MARKUP = '<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"\'><svg onload=window.hacked=1>'
const HIDDEN = 'pay\u202eevil\u2066\u200b\u{e0041}'
const HOSTILE = `${MARKUP}${HIDDEN}`
/** A name of a person, at the identity provider and in the tokens of agents. */
const PERSON = `${HIDDEN}${MARKUP}`
/** Elements of a page, however long its texts are. */
const ELEMENTS_MAX = 3_000
const WIDE = { width: 1280, height: 800 }
const PHONE = { width: 360, height: 740 }
const RAW = /[\u202e\u2066\u200b]/

/** All texts of a page that are displayed or spoken, but are no elements. */
const SPOKEN = `[document.title, ...document.querySelectorAll('[title], [aria-label], [alt]')]
  .map((one) => one instanceof Element ? one.getAttribute('title') + one.getAttribute('aria-label') + one.getAttribute('alt') : one).join('\\n')`

let plat: TestConsole

/** Labels of a resource, as long as they can be, and one that a token brings. Other characters than printable ASCII without spaces are refused. */
const LABELS = ['<img/src=x/onerror=window.hacked=1>', '"><script>window.hacked=1</script>', 'l'.repeat(64)]
const INHERITED = '<svg/onload=window.hacked=1>'

before(async () => {
  plat = await startConsole({
    people: { [PERSON]: ['leads', 'owners'] },
    additions: () => ({ toolLabels: { list_notes: { taints: LABELS } } }),
  })
})

after(() => plat.close())

/** Opens pages at both widths: no script ran, no element is wider than the window, and no hidden character is left raw. */
async function assertHarmless({ page, open, assertCalm }: Story, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await open(path)
    assert.doesNotMatch(await page.locator('body').innerText(), RAW, path)
    assert.doesNotMatch(String(await page.evaluate(SPOKEN)), RAW, `titles and labels of ${path}`)
    for (const size of [PHONE, WIDE]) {
      await page.setViewportSize(size)
      const where = `${path} at ${size.width} px`
      await assertCalm(where)
      assert.ok(Number(await page.evaluate('document.querySelectorAll("*").length')) < ELEMENTS_MAX, where)
    }
  }
}

test(
  'markup, scripts and hidden characters in arguments, users, tools and reasons are text on every page',
  TIMEOUT,
  async (t) => {
    const story = await openStory(t, plat)
    const user = HOSTILE.slice(0, 200)
    const session = 'hostile'
    const path = await holdCall(t, plat, { session, args: { name: MARKUP, [MARKUP]: HIDDEN }, user })
    await plat.callTool({ session, tool: 'add_note', args: { name: 'x', text: MARKUP }, user })
    await plat.callTool({ session, tool: HOSTILE.slice(0, 100), user })
    const denied = await holdCall(t, plat, { session, args: { again: 1 }, user })
    const { status } = await plat.admin('POST', `/v1/${denied}/deny`, { reason: HOSTILE })
    assert.equal(status, 200)
    const target = { session: 'default/assistant/hostile-revoked' }
    assert.equal((await plat.admin('POST', '/v1/revocations', { target, reason: HOSTILE })).status, 201)
    const evidence = await plat.admin('POST', '/v1/evidence', { namespace: 'default', agent: 'assistant', session })
    assert.equal(evidence.status, 201)
    const id = encodeURIComponent(`default/assistant/${session}`)
    await assertHarmless(story, [
      ...['now', 'approvals', 'approvals?state=denied', path, denied],
      ...['sessions', `sessions?q=${encodeURIComponent(MARKUP.slice(0, 40))}`, `sessions/${id}`],
      ...['ledger', `ledger?text=${encodeURIComponent(MARKUP.slice(0, 30))}`],
      ...['costs?by=user', 'costs?by=session', 'policy', 'servers', 'access'],
      ...[
        `sessions/${encodeURIComponent(HOSTILE)}`,
        `approvals/${encodeURIComponent(HOSTILE)}`,
        encodeURIComponent(HOSTILE),
      ],
    ])
    await story.open(path)
    await story.page.locator('.json .hidden-char', { hasText: 'U+202E' }).waitFor()
    await story.page.locator('.json .hidden-char', { hasText: 'U+E0041' }).waitFor()
  },
)

test(
  'names and definitions of tools of a hostile server are text, whatever their length and depth',
  TIMEOUT,
  async (t) => {
    const story = await openStory(t, plat)
    let schema: object = { type: 'string' }
    for (let level = 0; level < 25; level++) schema = { type: 'object', properties: { [MARKUP]: schema } }
    plat.weather.offer([
      { name: 'markup', description: HOSTILE, inputSchema: { type: 'object', description: MARKUP } },
      { name: MARKUP, description: 'a name of markup', inputSchema: { type: 'object' } },
      { name: HIDDEN, description: 'a name of hidden characters', inputSchema: { type: 'object' } },
      { name: Array(250).fill('a').join('/'), description: 'a name of many levels', inputSchema: { type: 'object' } },
      { name: 'deep', description: 'd', inputSchema: schema },
      { name: 'long', description: 'x'.repeat(1_000_000), inputSchema: { type: 'object' } },
    ])
    await plat.callTool({ session: 'tools', server: 'weather', tool: 'markup' })
    const pins = JSON.parse(await (await plat.admin('GET', '/v1/pins/default/weather')).text())
    assert.ok(pins.tools.length >= 6, 'the gateway knows the tools')
    await assertHarmless(story, ['servers', 'servers/default%2Fweather', 'now', 'ledger'])
    await story.page.setViewportSize({ width: 1280, height: 800 })
    await story.open('servers/default%2Fweather')
    for (const { tool } of pins.tools) {
      const at = pins.tools.findIndex((one: { readonly tool: string }) => one.tool === tool)
      await story.page.locator('.tools button').nth(at).click()
      await story.page.getByRole('heading', { name: /^Definition of/ }).waitFor()
      await story.assertCalm(`the definition of tool ${at}`)
    }
  },
)

test(
  'an argument of 1 MB and as many levels as the gateway takes are displayed whole, with few elements',
  TIMEOUT,
  async (t) => {
    const story = await openStory(t, plat)
    const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}1${']'.repeat(levels)}`)
    for (const [session, args] of [
      ['long', { name: 'x'.repeat(1_000_000) }],
      ['deep', { name: 'deep', deep: nested(60) }],
      ['wide', Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`member-${at}`, at]))],
      ['levels', { name: Array(10_000).fill('a').join('/') }],
    ] as const) {
      const path = await holdCall(t, plat, { session, args })
      await story.open(path)
      await story.page.locator('.json-line').first().waitFor()
      await assertHarmless(story, [path, `sessions/default%2Fassistant%2F${session}`])
    }
    const refused = await plat.callTool({ session: 'deeper', tool: 'delete_note', args: { deep: nested(10_000) } })
    assert.match(refused, /levels|deep|nest/i)
    await assertHarmless(story, ['sessions/default%2Fassistant%2Fdeeper', 'ledger'])
  },
)

test(
  'models that agents name, users of their calls, and people who log in are text on every page that lists them',
  TIMEOUT,
  async (t) => {
    const who = { agent: 'assistant', session: 'models', user: PERSON }
    assert.equal((await plat.callModel({ ...who, model: MARKUP })).status, 200)
    assert.equal((await plat.callModel({ ...who, model: HIDDEN })).status, 400, 'such names are refused')
    await waitForOutcomes(plat, 'models')
    for (const named of [{ session: MARKUP }, { session: HIDDEN }, { agent: HIDDEN }])
      await assert.rejects(plat.callModel({ ...who, ...named, model: 'small-1' }), /use letters, digits/)
    const path = await holdCall(t, plat, { session: 'models', args: { a: 1 }, user: PERSON })
    const story = await openStory(t, plat, { person: PERSON })
    const { page, open } = story
    await open(path)
    await page.getByRole('button', { name: 'Deny d' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
    const voter = page.locator('main .hidden-char', { hasText: 'U+202E' })
    await voter.first().waitFor()
    await page.locator('header .hidden-char', { hasText: 'U+202E' }).first().waitFor()
    const pages = [path, 'now', 'approvals?state=denied', 'sessions', 'sessions/default%2Fassistant%2Fmodels', 'access']
    await assertHarmless(story, pages)
    const all = await openStory(t, plat)
    const groups = ['agent', 'user', 'model', 'target', 'session'].map((group) => `costs?by=${group}`)
    await assertHarmless(all, [...pages, ...groups, 'servers', 'policy', 'ledger', 'ledger?session=models'])
    await all.open('costs?by=model')
    await all.page.getByText(MARKUP, { exact: true }).waitFor()
    await all.open('costs?by=user')
    await all.page.locator('main .hidden-char', { hasText: 'U+202E' }).first().waitFor()
  },
)

test(
  'taint labels are text in sessions, approvals, records and searches, and do not break the layout',
  TIMEOUT,
  async (t) => {
    const session = 'labelled'
    const call = (args: object) =>
      plat.callTool({ session, tool: 'delete_note', args, user: 'uma', inheritedTaints: [INHERITED] })
    const story = await openStory(t, plat)
    const { page, open } = story
    const first = call({ name: 'one' })
    await open(`approvals?session=${session}`)
    await page.getByRole('link', { name: 'notes/delete_note' }).click()
    await page.getByRole('button', { name: 'Approve a' }).click()
    await page.getByLabel('this call, and later calls of this tool in this session').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click()
    await first
    // The labels of this result end the approval for the session.
    await plat.callTool({ session, tool: 'list_notes', user: 'uma', inheritedTaints: [INHERITED] })
    await waitForOutcomes(plat, session, 2)
    const path = await holdCall(t, plat, { session, args: { name: 'two' } })
    const id = `sessions/default%2Fassistant%2F${session}`
    const search = `q=${encodeURIComponent(LABELS[0] ?? '')}`
    await assertHarmless(story, [
      ...['now', 'sessions', `sessions?${search}`, 'sessions?only=labelled', id],
      ...['approvals', `approvals?session=${session}`, path],
      ...['ledger', `ledger?session=${session}`, `ledger?text=${encodeURIComponent(INHERITED)}`],
      ...['costs?by=session', 'policy', 'servers', 'access'],
    ])
    await open(id)
    await page.getByText('not in force').waitFor()
    await page.getByText(INHERITED).first().waitFor()
    await open(`sessions?${search}`)
    await page.getByText('1 row', { exact: true }).waitFor()
    await open(`ledger?session=${session}&text=taintsAdded`)
    await page
      .getByRole('row', { name: /outcome.*list_notes/ })
      .getByRole('link')
      .click()
    await page.locator('.json-line').first().waitFor()
    await page.evaluate("document.querySelector('.json-box').scrollTop = 1e6")
    await page.locator('.json', { hasText: LABELS[0] ?? '' }).waitFor()
    await story.assertCalm('the record with the labels')
  },
)
