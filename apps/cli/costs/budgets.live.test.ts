import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import { printed, putResource } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp, type Up } from '../up/up.ts'
import { validateResources } from '../validate/validate.ts'
import { budgets } from './budgets.ts'

let up: Up
let upstream: ModelServer
let dir = ''

const agent = (more: object) => {
  const model = { endpoint: upstream.url, name: 'small-1', tokensPerMinute: 100_000 }
  const spec = {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'all',
    model,
    scopes: ['models:default.assistant'],
  }
  return putResource(dir, 'agents/default/assistant.yaml', 'Agent', { ...spec, ...more })
}
const policy = (spec: object) => putResource(dir, 'budgetpolicies/default/team.yaml', 'BudgetPolicy', spec)

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  upstream = await startModelServer()
  upstream.answers({ text: ['Hello'], usage: { prompt: 100, completion: 40 } })
  await agent({ budget: { perSessionUSD: 5, perDayUSD: '10.01', perMonthUSD: 100 } })
  await policy({ selector: { agents: ['assist*'] }, tokensPerDay: 1_000_000 })
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules: [{ name: 'a', action: 'allow' }] })
  const models = { 'openai/*': { input: '1', output: '10' } }
  await writeFile(join(dir, 'prices.json'), JSON.stringify({ version: 1, currency: 'USD', id: 'test', models }))
})
after(async () => {
  await upstream.close()
  await rm(dir, { recursive: true })
})

const validate = () => printed((output) => validateResources({ dir }, output))
const budgetsIn = (output: 'table' | 'json') => printed((to) => budgets({ dir, output }, to))

async function refusal(): Promise<string | null> {
  const minted = await printed((output) =>
    tokenMint({ dir, agent: 'assistant', session: 's', scope: [], format: 'json' }, output),
  )
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/llm/default.assistant/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${JSON.parse(minted.text).token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small-1', messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 64 }),
  })
  const answer = JSON.parse(await response.text())
  return answer.error === undefined ? null : `${answer.error.code}: ${answer.error.message}`
}

/** By id: micro-units, or tokens. */
async function spent(): Promise<Record<string, number>> {
  const items = JSON.parse((await budgetsIn('json')).text)
  const amount = ({ spent: { micros, tokens } }: { spent: { micros?: number; tokens?: number } }) => micros ?? tokens
  return Object.fromEntries(items.map((item: { id: string; spent: object }) => [item.id, amount(item)]))
}

async function assertUnusedSessionsAreLeftOut(): Promise<void> {
  const later = { now: () => Date.now() + 25 * 3_600_000 }
  const after = (all: boolean) => printed((to) => budgets({ dir, all, output: 'table' }, to, later))
  assert.doesNotMatch((await after(false)).text, /assistant\/session/)
  assert.match(
    (await after(false)).text,
    /1 budgets of sessions without a call for a day are left out: plat budgets -all/,
  )
  assert.match((await after(true)).text, /assistant\/session/)
}

test('budgets of resources are validated, enforced and shown, and refused ones have a condition', async () => {
  // Shows D2.budget.currency, D2.budget.currency.equalsGateway, D2.budget.perSessionUSD, D2.budget.perDayUSD,
  // D2.budget.perMonthUSD, D2.agent.budget, D2.error.budgetCurrency, D2.model.tokensPerMinute.
  assert.deepEqual(await validate(), { code: 0, text: `resources OK: ${join(dir, 'resources')}` })
  assert.deepEqual((await readdir(dir)).toSorted(), ['prices.json', 'resources'], 'nothing was written')
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  try {
    assert.equal(await refusal(), null)
    await until(async () => (await spent())['Agent/default/assistant/day'] === 500, 'the call settled')
    assert.deepEqual(await spent(), {
      'Agent/default/assistant/session:default/assistant/s': 500,
      'Agent/default/assistant/day': 500,
      'Agent/default/assistant/month': 500,
      'BudgetPolicy/default/team/day-tokens': 140,
    })
    const { code, text } = await budgetsIn('table')
    assert.equal(code, 0)
    assert.match(text, /^BUDGET +OF +PERIOD +CAP +SPENT +HELD +LEFT +RESETS$/m)
    assert.match(
      text,
      /^Agent\/default\/assistant\/day +\d{4}-\d\d-\d\d +10\.010000 USD +0\.000500 USD +0\.000000 USD +10\.009500 USD +\S+Z$/m,
    )
    assert.match(text, /^Agent\/default\/assistant\/session +default\/assistant\/s +5\.0{6} USD .* never$/m)
    assert.match(text, /^BudgetPolicy\/default\/team\/day-tokens .* 140 tokens +0 tokens +999860 tokens/m)

    await assertUnusedSessionsAreLeftOut()

    await policy({ selector: { agents: ['assist*'] }, tokensPerDay: 10 })
    await until(
      async () => (await refusal())?.includes('BudgetPolicy/default/team/day-tokens') === true,
      'the lowered cap',
    )
    await policy({ selector: { agents: ['assist*'] }, currency: 'EUR', perDay: 10 })
    const line = /currency: EUR, but the gateway counts in USD: nothing is converted/
    const refused = await validate()
    assert.equal(refused.code, 3)
    assert.match(
      refused.text,
      /^budgetpolicies\/default\/team\.yaml:1: spec\.currency: EUR, but the gateway counts in USD: /m,
    )
    await until(
      async () => (await refusal())?.includes('BudgetPolicy/default/team/refused') === true,
      'the budget of nothing',
    )
    const key = { namespace: 'default', name: 'team' }
    const ready = async () => (await up.store.get('BudgetPolicy', key))?.status?.conditions?.[0]
    await until(async () => (await ready())?.status === 'False', 'the condition')
    assert.match((await ready())?.message ?? '', line)

    await policy({ perDay: 10 })
    await agent({ budget: { currency: 'EUR', perDayUSD: 5 } })
    assert.match(
      (await validate()).text,
      /^agents\/default\/assistant\.yaml:1: spec\.budget\.currency: EUR, but the gateway counts in USD/m,
    )
    await until(async () => (await refusal())?.includes('unknown_route') === true, 'the route of the agent gone')
  } finally {
    await up.stop()
  }
})
