import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import { type Hold, LocalLimits, WindowCalendar } from '@plat/state'
import { type Denial, type Identity, isDenial, type ModelDemand, type Outcome, Snapshots } from '../../call/index.ts'
import { TemplateCounters, type TemplateCountersOptions } from './book/template-counters.ts'
import type { Cap } from './caps/budget.ts'
import { BudgetTable, type Match, type Selecting } from './caps/table.ts'
import type { Each } from './caps/template.ts'
import { decodePricing } from './pricing/decode.ts'
import { pricingSlot } from './pricing/pricing.ts'
import { createReserveStage } from './stage.ts'
import { callOf, demandOf, identity, modelTarget, outcomeOf } from './testing.ts'

/** A budget named `<what>` of the policy `team`. */
const budget = (what: string, amount: number, more: Partial<Cap> = {}, match: Match = {}): Selecting => ({
  cap: {
    id: `BudgetPolicy/default/team/${what}`,
    source: 'BudgetPolicy/default/team',
    scope: 'all',
    window: 'day',
    unit: 'micros',
    amount,
    alerts: [],
    ...more,
  },
  match,
})
const session = { window: 'session', scope: 'session' } as const
const month = { window: 'month' } as const
const tokens = { unit: 'tokens' } as const

interface CapsFixture {
  /** Null: not loaded yet. */
  readonly budgets: readonly Selecting[] | null
  readonly currency?: string
  readonly zone?: string
  readonly start?: number
  readonly demand?: Partial<ModelDemand> | null
  readonly pool?: NonNullable<TemplateCountersOptions['pool']>
}

/** A model at one micro-unit per input token and ten per output token; a prompt of 100 tokens. */
function setUp({
  budgets,
  currency = 'USD',
  zone = 'UTC',
  start = Date.UTC(2026, 0, 1),
  demand = {},
  pool,
}: CapsFixture) {
  const clock = new TestClock(start)
  const snapshots = new Snapshots()
  const prices = { version: 1, currency: 'USD', id: 'p', models: { 'openai/m': { input: '1', output: '10' } } }
  const decoded = decodePricing(
    Buffer.from(JSON.stringify({ ...prices, tools: { 'default/search/*': { perCall: '0.002' } } })),
  )
  if ('problems' in decoded) assert.fail(decoded.problems.join())
  snapshots.publish(pricingSlot, decoded.table)
  const limits = new LocalLimits({ clock, zone })
  const denied: string[] = []
  let limited = 0
  let table = budgets === null ? null : new BudgetTable(currency, budgets)
  const stage = createReserveStage({
    limits,
    budgetsOf: () => table,
    calendar: new WindowCalendar(zone),
    templates: new TemplateCounters({ now: () => clock.now(), zone, ...(pool !== undefined && { pool }) }),
    demandOf: () => (demand === null ? null : demandOf({ maxTokens: 100, ...demand })),
    clock,
    denied: (scope) => denied.push(scope),
    rateLimited: () => limited++,
    metered() {},
  })
  let calls = 0
  const admit = (who: Partial<Identity> = {}): Denial | Admitted => {
    const facts = { identity: { ...identity, ...who }, ...(demand !== null && { target: modelTarget }) }
    const call = callOf(`c${calls++}`, { clock, snapshot: snapshots.current, facts })
    const verdict = stage.admit(call)
    if (isDenial(verdict)) return verdict
    if (typeof verdict !== 'object' || verdict instanceof Promise || 'until' in verdict) assert.fail('no verdict')
    const { hold } = 'body' in verdict ? verdict.facts : verdict
    const cut = 'body' in verdict ? verdict.body.value : null
    const settle = (outcome: Partial<Outcome>) =>
      void stage.settle?.({ ...call, facts: { ...call.facts, hold } }, outcomeOf(outcome))
    return { hold, cut, settle }
  }
  return {
    clock,
    limits,
    admit,
    denied,
    limited: () => limited,
    reload: (entries: readonly Selecting[]) => {
      table = new BudgetTable(currency, entries)
    },
  }
}

interface Admitted {
  readonly hold: Hold | null
  readonly cut: unknown
  settle(outcome: Partial<Outcome>): void
}

function ok(verdict: Admitted | Denial): Admitted {
  if (isDenial(verdict)) assert.fail(`${verdict.code}: ${verdict.reason}`)
  return verdict
}

function no(verdict: Admitted | Denial): Denial {
  assert.ok(isDenial(verdict))
  return verdict
}

const reported = (prompt: number, completion: number) =>
  ({
    usageSource: 'reported',
    usage: { prompt, completion, cachedRead: 0, cachedWrite: 0, reasoning: 0 },
    costMicros: prompt + 10 * completion,
  }) as const

test('a call counts in every budget that selects it, all or nothing in one take', async () => {
  const it = setUp({
    budgets: [
      budget('session', 5_000, session),
      budget('day', 2_500),
      budget('month', 9_000, month),
      budget('of-ada', 1, {}, { users: ['ada'] }),
    ],
  })
  const first = ok(it.admit())
  assert.deepEqual(
    first.hold?.items.map(({ key, window, amount }) => [key.slice('usd/'.length), window, amount]),
    [
      ['session/BudgetPolicy/default/team/session/default/assistant/s', 'life', 1_100],
      ['BudgetPolicy/default/team/day', '2026-01-01', 1_100],
      ['BudgetPolicy/default/team/month', '2026-01', 1_100],
    ],
  )
  first.settle(reported(100, 20))
  for (const { key, window } of first.hold?.items ?? []) {
    assert.deepEqual(await it.limits.used(key, window), { spent: 300, held: 0 })
  }
  ok(it.admit())
  assert.equal(no(it.admit({ user: 'ada' })).code, 'budget_exceeded')
  assert.equal((await it.limits.used('usd/BudgetPolicy/default/team/month', '2026-01')).held, 1_100)
})

test('the refusal names the budget, the amount left and the reset time', () => {
  const start = Date.UTC(2026, 0, 1, 22)
  const it = setUp({ budgets: [budget('day', 1_150, { scope: 'agent' })], zone: 'Europe/Berlin', start })
  ok(it.admit()).settle(reported(100, 100))
  const { code, reason, retryAfterMs } = no(it.admit())
  assert.equal(code, 'budget_exceeded')
  assert.equal(
    reason,
    'the call may cost more than the 0.000050 USD left of the budget BudgetPolicy/default/team/day; ' +
      'it resets at 2026-01-01T23:00:00Z',
  )
  assert.equal(retryAfterMs, 3_600_000)
  assert.deepEqual(it.denied, ['agent'])
})

test('a budget of each session is one session’s and never resets', () => {
  const it = setUp({ budgets: [budget('session', 1_150, session)] })
  ok(it.admit()).settle(reported(100, 100))
  const { reason, retryAfterMs } = no(it.admit())
  assert.match(reason, /0\.000050 USD left of the budget BudgetPolicy\/default\/team\/session of this session$/)
  assert.equal(retryAfterMs, null)
  ok(it.admit({ session: 'other' }))
})

test('days and months reset in their zone, through 23 and 25 hours and at the end of a month', async () => {
  // Shows D3.cost.budgetTimezone.
  const zone = 'Europe/Berlin'
  const passesAgain = async (start: number, hours: number, more: Partial<Cap>) => {
    const it = setUp({ budgets: [budget('b', 1_100, more)], zone, start })
    ok(it.admit()).settle(reported(100, 100))
    await it.clock.advance(hours * 3_600_000 - 1)
    assert.equal(no(it.admit()).retryAfterMs, 1)
    await it.clock.advance(1)
    ok(it.admit())
  }
  await passesAgain(Date.UTC(2026, 2, 28, 23), 23, {})
  await passesAgain(Date.UTC(2026, 9, 24, 22), 25, {})
  await passesAgain(Date.UTC(2026, 1, 27, 23), 24, {})
  await passesAgain(Date.UTC(2026, 1, 28, 22), 1, month)
  await passesAgain(Date.UTC(2026, 2, 1, 0), 30 * 24 + 22, month)
})

test('a lowered cap denies the next call, a raised or removed one admits it', () => {
  const it = setUp({ budgets: [budget('day', 5_000)] })
  ok(it.admit()).settle(reported(100, 100))
  it.reload([budget('day', 1_150)])
  assert.equal(no(it.admit()).code, 'budget_exceeded')
  it.reload([budget('day', 9_000)])
  ok(it.admit()).settle({ forwarded: false, result: 'denied' })
  it.reload([])
  assert.equal(ok(it.admit()).hold, null)
  it.reload([budget('day', 1_150)])
  assert.equal(no(it.admit()).code, 'budget_exceeded', 'what was spent is not forgotten')
})

test('a call is clamped to the smallest amount left in any of its budgets', async () => {
  const it = setUp({ budgets: [budget('day', 4_100), budget('month', 1_740, month)], demand: { maxTokens: 1_000 } })
  const { cut, hold } = ok(it.admit())
  assert.equal(cut, 164)
  assert.deepEqual(
    hold?.items.map(({ amount }) => amount),
    [1_740, 1_740],
  )
  const both = setUp({ budgets: [budget('a', 1_740), budget('b', 9_000, tokens), budget('c', 165, tokens)] })
  assert.equal(ok(both.admit()).cut, 65)
  const short = setUp({ budgets: [budget('a', 1_740), budget('c', 163, tokens)], demand: { maxTokens: 200 } })
  assert.match(no(short.admit()).reason, /may use more than the 163 tokens left of the budget .*\/c/)
})

test('a budget of tokens needs no price, and counts what the provider reports', async () => {
  const key = 'tokens/BudgetPolicy/default/team/day-tokens'
  const it = setUp({
    budgets: [budget('day-tokens', 1_000, tokens)],
    demand: { priced: { key: 'openai/other', scopes: [] } },
  })
  const used = () => it.limits.used(key, '2026-01-01')
  ok(it.admit()).settle({ ...reported(90, 30), costMicros: 0 })
  assert.deepEqual(await used(), { spent: 120, held: 0 })
  ok(it.admit()).settle({ ...reported(90, 5_000), usageSource: 'estimated', result: 'cancelled' })
  assert.deepEqual(await used(), { spent: 320, held: 0 }, 'an estimate is never more than what was held')
  ok(it.admit()).settle({ result: 'failed' })
  assert.deepEqual(await used(), { spent: 420, held: 0 }, 'the prompt was read')
  ok(it.admit()).settle({ result: 'failed', code: 'upstream_credential' })
  ok(it.admit()).settle({ forwarded: false, result: 'denied' })
  assert.deepEqual(await used(), { spent: 420, held: 0 })
  const unbounded = setUp({ budgets: [budget('day-tokens', 1_000, tokens)], demand: { bounded: false } })
  assert.equal(no(unbounded.admit()).code, 'price_unknown')
})

test('tools that cost count in budgets of money, and in none of tokens', async () => {
  const it = setUp({ budgets: [budget('day', 3_000), budget('t', 0, tokens)], demand: null })
  const first = ok(it.admit())
  assert.equal(first.hold?.items.length, 1)
  assert.equal(no(it.admit()).code, 'budget_exceeded')
  first.settle({ costMicros: 2_000 })
  assert.deepEqual(await it.limits.used('usd/BudgetPolicy/default/team/day', '2026-01-01'), { spent: 2_000, held: 0 })
  assert.equal(ok(setUp({ budgets: [], demand: null }).admit()).hold, null)
})

test('a zero budget refuses every call with a cost', () => {
  const it = setUp({ budgets: [budget('refused', 0), budget('refused-tokens', 0, tokens)] })
  assert.equal(no(it.admit()).code, 'budget_exceeded')
})

test('calls with a cost are refused while budgets are not loaded or prices are in another currency', () => {
  // Shows D3.error.budgetCurrency.
  for (const demand of [{}, null]) {
    assert.equal(no(setUp({ budgets: null, demand }).admit()).code, 'state_unavailable')
    const foreign = no(setUp({ budgets: [budget('day', 5_000)], currency: 'EUR', demand }).admit())
    assert.deepEqual(
      [foreign.code, foreign.reason],
      ['price_unknown', 'the prices are in USD, but the budgets of the call in EUR'],
    )
  }
  assert.ok(ok(setUp({ budgets: [budget('t', 500, tokens)], currency: 'EUR' }).admit()))
  assert.ok(ok(setUp({ budgets: [budget('b', 1, {}, { users: ['ada'] })], currency: 'EUR' }).admit()))
})

test('the tokens of a minute are each session’s on a route; a call above them succeeds in the next minute', async () => {
  // Shows D2.model.tokensPerMinute.
  const it = setUp({ budgets: [], demand: { tokensPerMinute: 350 } })
  const first = ok(it.admit())
  assert.deepEqual(
    first.hold?.items.map(({ key, unit, amount, cap }) => [key, unit, amount, cap]),
    [['tpm/default/assistant/s/default.assistant', 'tokens', 200, 350]],
  )
  first.settle(reported(90, 70))
  await it.clock.advance(20_000)
  const limited = no(it.admit())
  assert.deepEqual([limited.code, limited.retryAfterMs, it.limited()], ['rate_limited', 40_000, 1])
  ok(it.admit({ session: 'other' }))
  await it.clock.advance(40_000)
  ok(it.admit())
})

test('a call is clamped to a whole minute, and refused for good if its prompt alone is longer', () => {
  const it = setUp({ budgets: [], demand: { maxTokens: null, tokensPerMinute: 350 } })
  const { cut, hold } = ok(it.admit())
  assert.deepEqual([cut, hold?.items[0]?.amount], [250, 350])
  const long = setUp({ budgets: [], demand: { tokensPerMinute: 163 } })
  const { code, reason, retryAfterMs } = no(long.admit())
  assert.deepEqual([code, retryAfterMs, long.limited()], ['rate_limited', null, 1])
  assert.match(reason, /prompt may have 100 tokens, and the model route allows 163 a minute/)
})

/** A template of the policy `team`. */
const each = (per: Each['per'], amount: number, more: Partial<Each> = {}): Selecting => ({
  ...budget(`${per}/day`, amount, { scope: per, isTemplate: true }),
  each: { per, names: null, except: [], ...more },
})

test('a template limits each user separately, with the amounts of its exceptions', async () => {
  const except = [{ names: ['boss', '*-lead'], amount: 2_200 }]
  const it = setUp({ budgets: [each('user', 1_100, { except })] })
  ok(it.admit({ user: 'ada' }))
  const denial = no(it.admit({ user: 'ada' }))
  assert.match(
    denial.reason,
    /left of the budget BudgetPolicy\/default\/team\/user\/day of user ada; it resets at 2026-01-02T00:00:00Z/,
  )
  assert.equal(denial.retryAfterMs, 86_400_000)
  ok(it.admit({ user: 'bob' }))
  for (let call = 0; call < 2; call++) ok(it.admit({ user: 'boss' }))
  assert.match(no(it.admit({ user: 'boss' })).reason, /of user boss/)
  ok(it.admit({ user: null }))
  assert.match(no(it.admit({ user: null, session: 'other' })).reason, /of calls without a user/)
  assert.deepEqual(it.denied, ['user', 'user', 'user'])
  await it.clock.advance(86_400_000)
  ok(it.admit({ user: 'ada' }))
})

test('a template of groups limits the selected groups of a user, of models what is requested, and tools have no model', () => {
  const groups = setUp({ budgets: [each('group', 1_100, { names: ['team-*'] })] })
  const both = ok(groups.admit({ groups: ['team-a', 'team-b', 'staff'] }))
  assert.deepEqual(
    both.hold?.items.map(({ key }) => key.slice(key.lastIndexOf('/') + 1)),
    ['team-a', 'team-b'],
  )
  assert.match(no(groups.admit({ groups: ['team-b'] })).reason, /of group team-b/)
  ok(groups.admit({ groups: ['team-c'] }))
  assert.equal(ok(groups.admit({ groups: [] })).hold, null)
  const models = setUp({ budgets: [each('model', 1_100)] })
  ok(models.admit())
  assert.match(no(models.admit({ session: 'other', user: 'bob' })).reason, /of model openai\/m/)
  const tools = setUp({ budgets: [each('model', 1)], demand: null })
  assert.equal(ok(tools.admit()).hold, null)
})

test('an agent with invented users uses its share of a template only, and what it used ends with the window', async () => {
  const pool = new SharedPool({ name: 'template_counters', total: 8, shares: [5, 3] })
  const it = setUp({ budgets: [each('user', 9_000), each('session', 9_000)], pool })
  for (const user of ['x', 'y']) ok(it.admit({ user })).settle({ forwarded: false })
  for (const user of ['v', 'w']) ok(it.admit({ user })).settle(reported(0, 0))
  for (const user of ['a', 'b', 'c']) ok(it.admit({ user })).settle(reported(100, 10))
  ok(it.admit({ user: 'a' })).settle(reported(0, 0))
  const denial = no(it.admit({ user: 'd' }))
  assert.equal(denial.code, 'backlog_full')
  assert.match(
    denial.reason,
    /the budget BudgetPolicy\/default\/team\/user\/day has no room for one more counter until 2026-01-02T00:00:00Z/,
  )
  ok(it.admit({ user: 'a' }))
  ok(it.admit({ user: 'd', agent: 'modest' }))
  await it.clock.advance(86_400_000)
  for (const user of ['e', 'f', 'g']) ok(it.admit({ user }))
  assert.ok(pool.used <= 8)
})

test('a refused call leaves no counter of a template behind, and one that is spent meanwhile stays', () => {
  const pool = new SharedPool({ name: 'template_counters', total: 8, shares: [5, 3] })
  const it = setUp({ budgets: [each('user', 1_100)], pool })
  const held = ok(it.admit({ user: 'a' }))
  no(it.admit({ user: 'a' }))
  assert.equal(pool.used, 0)
  held.settle(reported(100, 10))
  assert.equal(pool.used, 1)
})

test('a call that has no room for one of its counters leaves none of the others behind', () => {
  const pool = new SharedPool({ name: 'template_counters', total: 1, shares: [1, 1] })
  const it = setUp({ budgets: [each('user', 9_000), each('session', 9_000)], pool })
  assert.equal(no(it.admit()).code, 'backlog_full')
  assert.equal(pool.used, 0)
})

test('a caller with more groups than a call may count is refused with the remedy', () => {
  const groups = Array.from({ length: 65 }, (_, at) => `g${at}`)
  const denial = no(setUp({ budgets: [each('group', 9_000)] }).admit({ groups }))
  assert.match(denial.reason, /counts in more than 64 budgets and rates: select fewer of its groups with names/)
})
