import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { json, routeOver, scripted } from '../../testing/model-route.ts'

const part = (one: object) => ({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: [one] }] })
const image = part({ type: 'image_url', image_url: { url: 'https://site.example/a.png' } })

/** A route whose prompts cost 1 and whose output costs 2 per million tokens, under a budget of 0.5 for each session. */
async function budgeted(t: TestContext, keys: object, answer: object, price: object = {}) {
  const pricingFile = join(tempFolder(), 'prices.json')
  const models = { 'openai/m': { input: '1', output: '2', ...price } }
  await writeFile(pricingFile, JSON.stringify({ version: 1, currency: 'USD', id: 'p', models }))
  const upstream = await scripted(t, (_, response) => response.writeHead(200, json).end(JSON.stringify(answer)))
  return routeOver(t, [{ upstream }], { pricingFile, sessionBudgetUSD: 0.5, auditFailurePolicy: 'closed' }, keys)
}

const reported = { choices: [], usage: { prompt_tokens: 900, completion_tokens: 50 } }

test('under a budget the context window is held for an image, and the reported usage is paid', async (t) => {
  // Shows D3.route.contextTokens
  const { ask, outcomes } = await budgeted(t, { contextTokens: 400_000 }, reported)
  const response = await ask(image)
  assert.equal(response.status, 200, response.text)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  assert.deepEqual(Object.values((await outcomes())[0].settled), [1000])
})

test('a context window beyond the budget, or none, refuses an image, and sound is refused in any case', async (t) => {
  const codeOf = async (keys: object, body: object) => {
    const { ask } = await budgeted(t, keys, reported)
    const { status, text } = await ask(body)
    return [status, JSON.parse(text).error.code]
  }
  assert.deepEqual(await codeOf({ contextTokens: 600_000 }, image), [429, 'budget_exceeded'])
  assert.deepEqual(await codeOf({}, image), [403, 'price_unknown'])
  const sound = part({ type: 'input_audio', input_audio: { data: 'aaaa', format: 'wav' } })
  assert.deepEqual(await codeOf({ contextTokens: 1000 }, sound), [403, 'price_unknown'])
})

test('under a budget a refusal of what nothing bounds names it, and what to set', async (t) => {
  const keys = { contextTokens: 400_000, providerTools: ['web_search'] }
  const messageOf = async (own: object, body: object) => {
    const { ask } = await budgeted(t, own, reported)
    const { status, text } = await ask(body)
    return `${status} ${JSON.parse(text).error.message}`
  }
  const search = { ...part({ type: 'text', text: 'hi' }), web_search_options: {} }
  assert.match(await messageOf(keys, search), /^403 .*what web_search costs.*remove it from providerTools of the route/)
  assert.match(await messageOf({}, image), /^403 .*set contextTokens in the price of openai\/m or in the route/)
})

test('without reported usage the context window is paid, since the bytes of an image are not an estimate', async (t) => {
  const { ask, outcomes } = await budgeted(t, { contextTokens: 400_000 }, { choices: [] })
  assert.equal((await ask(image)).status, 200)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  const [outcome] = await outcomes()
  assert.deepEqual([outcome.usageSource, Object.values(outcome.settled)], ['estimated', [400_000]])
})

test('without contextTokens of the route the context window of the price is held, also for documents and stored responses', async (t) => {
  const { ask, outcomes } = await budgeted(t, {}, reported, { contextTokens: 400_000 })
  const document = part({ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } })
  for (const body of [image, document]) assert.equal((await ask(body)).status, 200)
  await until(async () => (await outcomes()).length === 2, 'the outcomes')
  for (const outcome of await outcomes()) assert.deepEqual(Object.values(outcome.settled), [1000])
  const sound = part({ type: 'input_audio', input_audio: { data: 'aaaa', format: 'wav' } })
  assert.equal(JSON.parse((await ask(sound)).text).error.code, 'price_unknown')
  const small = await budgeted(t, { contextTokens: 600_000 }, reported, { contextTokens: 400_000 })
  assert.equal((await small.ask(document)).status, 429, 'that of the route takes precedence')
})
