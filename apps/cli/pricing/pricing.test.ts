import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { pricingProblems } from '@plat/gateway/config-files'
import { tempFolder } from '@plat/testkit/local'
import { printed } from '../testing/commands.ts'
import { packagedPrices, pricingList, pricingUpdate } from './pricing.ts'
import { PRICES } from './table.ts'

let dir = ''
beforeEach(() => {
  dir = tempFolder()
})

const update = (more: object = {}) => printed((output) => pricingUpdate({ dir, ...more }, output))
const prices = async () => JSON.parse(await readFile(join(dir, 'prices.json'), 'utf8'))
const put = async (name: string, content: object) => {
  await writeFile(join(dir, name), JSON.stringify(content))
  return join(dir, name)
}

test('the prices of the package are valid, dated, and have the source of their provider', async () => {
  assert.deepEqual(pricingProblems(Buffer.from(JSON.stringify(packagedPrices()))), [])
  const rows = JSON.parse((await printed((output) => pricingList('json', output))).text)
  for (const { model, date, source } of rows) {
    assert.match(date, /^\d{4}-\d\d-\d\d$/, model)
    assert.ok(URL.canParse(source), model)
  }
  for (const provider of Object.keys(PRICES))
    assert.ok(rows.some(({ model }: { model: string }) => model.startsWith(provider)))
})

test('every model that is priced by tokens has its context window, which bounds what documents cost', () => {
  const models: Readonly<Record<string, { readonly contextTokens?: number }>> = packagedPrices().models
  for (const [provider, rows] of Object.entries(PRICES))
    for (const [model] of rows) assert.ok((models[`${provider}/${model}`]?.contextTokens ?? 0) > 0, model)
  assert.equal(models['openai/gpt-5']?.contextTokens, 272_000)
  assert.deepEqual(models['openai/whisper-1'], { perMinute: '0.006' })
})

test('an update adds and replaces prices of models, and everything else stays', async () => {
  const own = { input: '1', output: '2' }
  const tools = { 'default/search/*': { perCall: '0.002' } }
  const models = { 'openai/our-model': own, 'openai/gpt-4o': own }
  await put('prices.json', { version: 1, currency: 'USD', id: 'ours', models, tools })
  const { text } = await update()
  assert.match(text, /changed {2}openai\/gpt-4o: 1\/2 -> 2\.5\/10, cachedRead "1\.25", contextTokens 128000/)
  const after = await prices()
  assert.deepEqual([after.models['openai/our-model'], after.tools], [own, tools])
  assert.equal(after.models['openai/gpt-4o'].input, '2.5')
  assert.match(after.id, /^plat-/)
  assert.match((await update()).text, /^0 prices changed/)
})

test('a dry run writes nothing', async () => {
  assert.match((await update({ dryRun: true })).text, /new +openai\/gpt-5: .*\(nothing was written\)$/s)
  assert.equal(existsSync(join(dir, 'prices.json')), false)
})

test('the price list of LiteLLM is converted, and models without a price by token are left out', async () => {
  const from = await put('list.json', {
    sample_spec: { litellm_provider: 'one of', input_cost_per_token: 0 },
    'gpt-x': {
      litellm_provider: 'openai',
      max_input_tokens: 400_000,
      input_cost_per_token: 2.5e-6,
      output_cost_per_token: 1e-5,
    },
    'gemini/pro-x': {
      ...{ litellm_provider: 'gemini', input_cost_per_token: 1.25e-6, output_cost_per_token: 1e-5 },
      ...{ input_cost_per_token_above_200k_tokens: 2.5e-6, output_cost_per_token_above_200k_tokens: 1.5e-5 },
      cache_read_input_token_cost: 1.25e-7,
    },
    'azure/model-x': { litellm_provider: 'azure', input_cost_per_token: 2e-6, output_cost_per_token: 8e-6 },
    'azure/eu/model-x': { litellm_provider: 'azure', input_cost_per_token: 3e-6, output_cost_per_token: 9e-6 },
    'dall-e': { litellm_provider: 'openai', input_cost_per_pixel: 1e-8 },
    'command-x': { litellm_provider: 'cohere', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 },
  })
  await update({ from })
  assert.deepEqual(await prices(), {
    ...{ version: 1, currency: 'USD', id: 'litellm' },
    models: {
      'openai/gpt-x': { input: '2.5', output: '10', contextTokens: 400_000 },
      'azure-openai/model-x': { input: '2', output: '8' },
      'gemini/pro-x': {
        ...{ input: '1.25', output: '10', cachedRead: '0.125' },
        tiers: [{ aboveInputTokens: 200_000, input: '2.5', output: '15' }],
      },
    },
  })
})

test('a file that is not a price list, or has another currency, changes nothing', async () => {
  const from = await put('list.json', { version: 1, currency: 'USD', id: 'x', models: { 'openai/a': { input: 'x' } } })
  await assert.rejects(update({ from }), /list\.json: models\[openai\/a\]\.input: /)
  await assert.rejects(update({ from: join(dir, 'none') }), /none does not exist$/)
  await assert.rejects(update({ from: await put('list.json', {}) }), /list\.json: /)
  await put('prices.json', { version: 1, currency: 'EUR', id: 'x' })
  await assert.rejects(update(), /has prices in EUR, and the source in USD/)
})
