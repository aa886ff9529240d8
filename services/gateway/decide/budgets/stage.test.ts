import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import { type Hold, type HoldItem, LocalLimits, windowOf } from '@plat/state'
import {
  type Body,
  type Denial,
  type Facts,
  isDenial,
  type ModelDemand,
  type Outcome,
  Snapshots,
} from '../../call/index.ts'
import type { Selecting } from './caps/table.ts'
import { decodePricing } from './pricing/decode.ts'
import { pricingSlot } from './pricing/pricing.ts'
import { createReserveStage } from './stage.ts'
import { budgetParts, callOf, decision, demandOf, identity, modelTarget, outcomeOf } from './testing.ts'

const KEY = 'usd/session/default/assistant/s'

interface StageFixture {
  readonly capMicros?: number | null
  readonly budgets?: readonly Selecting[]
  /** Absent: a tool call. */
  readonly demand?: Partial<ModelDemand>
  readonly prices?: object
  readonly holds?: SharedPool
}

/** One micro-unit per input token, ten per output token. */
const plain = { 'openai/m': { input: '1', output: '10' } }

function setUp({ capMicros = 10_000, budgets = [], demand, prices = { models: plain }, holds }: StageFixture) {
  const clock = new TestClock()
  const snapshots = new Snapshots()
  const decoded = decodePricing(Buffer.from(JSON.stringify({ version: 1, currency: 'USD', id: 'p', ...prices })))
  if ('problems' in decoded) assert.fail(decoded.problems.join())
  snapshots.publish(pricingSlot, decoded.table)
  const limits = new LocalLimits({ clock, ...(holds !== undefined && { holds }) })
  let metered = 0
  let denied = 0
  let rateLimited = 0
  const stage = createReserveStage({
    limits,
    ...budgetParts(capMicros, budgets),
    demandOf: () => (demand === undefined ? null : demandOf(demand)),
    clock,
    denied: () => denied++,
    rateLimited: () => rateLimited++,
    metered(micros) {
      metered += micros
    },
  })
  let calls = 0
  const call = (facts: Partial<Facts> = {}) =>
    callOf(`c${calls++}`, {
      clock,
      snapshot: snapshots.current,
      facts: { ...(demand === undefined ? {} : { target: modelTarget }), ...facts },
    })
  const admit = async (facts: Partial<Facts> = {}): Promise<Admitted | Denial> => {
    const it = call(facts)
    const verdict = await stage.admit(it)
    if (isDenial(verdict)) return verdict
    if (typeof verdict !== 'object' || ('kind' in verdict && verdict.kind === 'wait')) assert.fail('no verdict')
    const body = 'body' in verdict ? verdict.body : null
    const { hold } = 'body' in verdict ? verdict.facts : verdict
    return {
      hold,
      body,
      settle: (outcome) => stage.settle?.({ ...it, facts: { ...it.facts, hold } }, outcomeOf(outcome)),
    }
  }
  return {
    clock,
    limits,
    admit,
    used: () => limits.used(KEY, 'life'),
    get metered() {
      return metered
    },
    get rateLimited() {
      return rateLimited
    },
    get denied() {
      return denied
    },
  }
}

interface Admitted {
  readonly hold: Hold | null
  readonly body: Body | null
  settle(outcome: Partial<Outcome>): void | Promise<void>
}

function ok(verdict: Admitted | Denial): Admitted {
  if (isDenial(verdict)) assert.fail(`${verdict.code}: ${verdict.reason}`)
  return verdict
}

function no(verdict: Admitted | Denial): Denial {
  assert.ok(isDenial(verdict))
  return verdict
}

const reported = (costMicros: number) => ({ usageSource: 'reported', costMicros }) as const

test('a model call holds its prompt and requested output, and settles the actual usage', async () => {
  const it = setUp({ demand: { maxTokens: 200 } })
  const admitted = ok(await it.admit())
  assert.equal(admitted.body, null)
  assert.partialDeepStrictEqual(admitted.hold?.items, [
    { key: KEY, window: 'life', cap: 10_000, amount: 2_100, unit: 'micros' },
  ])
  await admitted.settle(reported(150))
  assert.deepEqual(await it.used(), { spent: 150, held: 0 })
  assert.deepEqual(admitted.hold?.settled, new Map([[KEY, 150]]))
  assert.equal(it.metered, 150)
})

test('every choice is held, and a missing output limit is written', async () => {
  const each = setUp({ demand: { maxTokens: 100, choices: 3 } })
  assert.equal(ok(await each.admit()).hold?.items[0]?.amount, 100 + 3_000)
  const unlimited = setUp({ demand: {}, capMicros: 1_000_000 })
  const admitted = ok(await unlimited.admit())
  assert.equal(admitted.hold?.items[0]?.amount, 100 + 40_960)
  assert.equal(admitted.body?.value, 4096)
})

test("the route's limit is kept with and without a budget, and never raised", async () => {
  for (const capMicros of [null, 1_000_000]) {
    const cut = async (demand: Partial<ModelDemand>) => ok(await setUp({ capMicros, demand }).admit()).body?.value
    assert.equal(await cut({ maxTokens: 900, routeMaxTokens: 500 }), 500)
    assert.equal(await cut({ maxTokens: 300, routeMaxTokens: 500 }), undefined)
    assert.equal(await cut({ routeMaxTokens: 500 }), 500)
  }
  assert.equal(ok(await setUp({ capMicros: null, demand: {} }).admit()).hold, null)
})

test('a call that requests more than is left is clamped if 64 tokens or more fit', async () => {
  const fits = setUp({ demand: { maxTokens: 5_000 }, capMicros: 100 + 640 })
  const admitted = ok(await fits.admit())
  assert.equal(admitted.body?.value, 64)
  assert.deepEqual(await fits.used(), { spent: 0, held: 740 })
  const short = setUp({ demand: { maxTokens: 5_000 }, capMicros: 100 + 639 })
  assert.equal(no(await short.admit()).code, 'budget_exceeded')
  assert.deepEqual([await short.used(), short.denied], [{ spent: 0, held: 0 }, 1])
  const few = setUp({ demand: { maxTokens: 20 }, capMicros: 100 + 200 })
  assert.equal(ok(await few.admit()).body, null)
  const choices = setUp({ demand: { maxTokens: 5_000, choices: 2 }, capMicros: 100 + 1_300 })
  assert.equal(ok(await choices.admit()).body?.value, 65)
})

test('a used-up budget refuses and reports the amount left', async () => {
  const it = setUp({ demand: { maxTokens: 64 }, capMicros: 1_000 })
  await ok(await it.admit()).settle(reported(740))
  const denial = no(await it.admit())
  assert.deepEqual([denial.code, denial.retryAfterMs], ['budget_exceeded', null])
  assert.match(denial.reason, /0\.000260 USD/)
})

test('under a budget a model without a price is refused, and so is an unbounded prompt', async () => {
  assert.equal(
    no(await setUp({ demand: { priced: { key: 'openai/other', scopes: [] } } }).admit()).code,
    'price_unknown',
  )
  const unknown = no(await setUp({ demand: { bounded: false } }).admit())
  assert.match(
    `${unknown.code}: ${unknown.reason}`,
    /^price_unknown: .*set contextTokens in the price of openai\/m or in the route$/,
  )
  const hosted = no(await setUp({ demand: { bounded: false, openEnd: 'web_search' } }).admit())
  assert.match(hosted.reason, /what web_search costs.*remove it from providerTools of the route/)
  const inputOnly = { models: { 'openai/m': { input: '1' } } }
  assert.equal(no(await setUp({ demand: {}, prices: inputOnly }).admit()).code, 'price_unknown')
  assert.equal(
    ok(await setUp({ capMicros: null, demand: { priced: { key: 'openai/other', scopes: [] } } }).admit()).hold,
    null,
  )
  assert.equal(ok(await setUp({ capMicros: null, demand: { bounded: false } }).admit()).hold, null)
})

test('the hold of a call that was not forwarded is released whole', async () => {
  const it = setUp({ demand: { maxTokens: 200 } })
  for (const result of ['denied', 'cancelled', 'rewound'] as const) {
    await ok(await it.admit()).settle({ forwarded: false, result })
    assert.deepEqual(await it.used(), { spent: 0, held: 0 })
  }
  assert.equal(it.metered, 0)
})

test('a forwarded call without a usage report costs the observed usage, at least its prompt, at most its hold', async () => {
  const it = setUp({ demand: { maxTokens: 200 } })
  await ok(await it.admit()).settle({ result: 'cancelled', usageSource: 'estimated', costMicros: 700 })
  assert.equal((await it.used()).spent, 700)
  await ok(await it.admit()).settle({ result: 'failed', usageSource: 'estimated', costMicros: 9_000 })
  assert.equal((await it.used()).spent, 700 + 2_100)
  await ok(await it.admit()).settle({ result: 'failed' })
  assert.deepEqual(await it.used(), { spent: 700 + 2_100 + 100, held: 0 })
})

test('a call refused by the plane, or for its key by the provider, costs nothing', async () => {
  for (const demand of [{ maxTokens: 200 }, undefined]) {
    const prices = { models: plain, tools: { 'default/search/*': { perCall: '0.002' } } }
    const it = setUp({ prices, ...(demand !== undefined && { demand }) })
    await ok(await it.admit()).settle({ result: 'denied', code: 'unknown_route' })
    await ok(await it.admit()).settle({ result: 'failed', code: 'upstream_credential' })
    assert.deepEqual(await it.used(), { spent: 0, held: 0 })
  }
})

test('a report above the hold counts whole', async () => {
  const it = setUp({ demand: { maxTokens: 200 } })
  await ok(await it.admit()).settle(reported(3_000))
  assert.deepEqual(await it.used(), { spent: 3_000, held: 0 })
})

test('a tool with a price holds it for each call, and one without holds nothing', async () => {
  const prices = { tools: { 'default/search/*': { perCall: '0.002' } } }
  const it = setUp({ prices, capMicros: 3_000 })
  const first = ok(await it.admit())
  assert.equal(no(await it.admit()).code, 'budget_exceeded')
  await first.settle({ costMicros: 2_000 })
  assert.deepEqual(await it.used(), { spent: 2_000, held: 0 })
  assert.equal(ok(await setUp({ prices: {} }).admit()).hold, null)
  const open = setUp({ prices, capMicros: null })
  await ok(await open.admit()).settle({ costMicros: 2_000 })
  assert.equal(open.metered, 2_000)
})

test('a limit below a micro-unit refuses every call with a cost', async () => {
  const it = setUp({ prices: { tools: { 'default/search/*': { perCall: '0.000001' } } }, capMicros: 0 })
  assert.equal(no(await it.admit()).code, 'budget_exceeded')
})

function rated(clock: TestClock, cap: number): Partial<Facts> {
  const rate: HoldItem = { key: 'rate/default/p/r/s', window: windowOf(clock.now(), 60), cap, amount: 1, unit: 'calls' }
  return { decision: { ...decision, rates: [rate] } }
}

test('rates and money are held together, and a refused call holds neither', async () => {
  const it = setUp({ prices: { tools: { 'default/search/*': { perCall: '0.002' } } }, capMicros: 5_000 })
  const window = windowOf(it.clock.now(), 60)
  const calls = () => it.limits.used('rate/default/p/r/s', window)
  ok(await it.admit(rated(it.clock, 2)))
  await ok(await it.admit(rated(it.clock, 2))).settle({ costMicros: 2_000 })
  const limited = no(await it.admit(rated(it.clock, 2)))
  assert.deepEqual([limited.code, limited.policy, limited.rule], ['rate_limited', 'default/p', 'r'])
  assert.ok(limited.retryAfterMs !== null && limited.retryAfterMs > 0 && limited.retryAfterMs <= 60_000)
  assert.equal((await it.used()).held + (await it.used()).spent, 4_000)
  assert.equal(no(await it.admit(rated(it.clock, 9))).code, 'budget_exceeded')
  const { spent, held } = await calls()
  assert.equal(spent + held, 2)
})

test('a rate is released if the call was not forwarded, and spent otherwise', async () => {
  const it = setUp({ capMicros: null })
  const window = windowOf(it.clock.now(), 60)
  await ok(await it.admit(rated(it.clock, 2))).settle({ forwarded: false, result: 'denied' })
  assert.deepEqual(await it.limits.used('rate/default/p/r/s', window), { spent: 0, held: 0 })
  await ok(await it.admit(rated(it.clock, 2))).settle({ result: 'failed' })
  assert.deepEqual(await it.limits.used('rate/default/p/r/s', window), { spent: 1, held: 0 })
})

test('asynchronous limits are awaited, and failing limits refuse every call', async () => {
  const it = setUp({})
  const later = {
    take: async (...args: Parameters<LocalLimits['take']>) => it.limits.take(...args),
    used: it.limits.used,
    now: () => it.clock.now(),
  }
  const options = { ...budgetParts(null), clock: it.clock, denied() {}, rateLimited() {}, metered() {} }
  const snapshot = new Snapshots().current
  const rates = rated(it.clock, 1)
  const stage = createReserveStage({ ...options, limits: later, demandOf: () => null })
  const verdict = stage.admit(callOf('later', { clock: it.clock, snapshot, facts: rates }))
  assert.ok(verdict instanceof Promise && !isDenial(await verdict))
  const broken = createReserveStage({
    ...options,
    demandOf: () => null,
    limits: { take: () => Promise.reject(new Error('gone')), used: it.limits.used, now: () => it.clock.now() },
  })
  const unasked = await broken.admit(callOf('broken', { clock: it.clock, snapshot, facts: rates }))
  assert.ok(isDenial(unasked) && unasked.code === 'state_unavailable')
})

test('a session whose calls fill its share of open holds is refused while another is served', async () => {
  const holds = new SharedPool({ name: 'open_holds', total: 6, shares: [4, 2] })
  const { admit } = setUp({ demand: { maxTokens: 10 }, holds })
  const calls = [await admit(), await admit()]
  const refused = await admit()
  assert.ok(isDenial(refused))
  assert.deepEqual([refused.code, refused.retryAfterMs], ['backlog_full', 1000])
  assert.ok(!isDenial(await admit({ identity: { ...identity, session: 'other' } })))
  const [first] = calls
  if (first !== undefined && !isDenial(first)) await first.settle({})
  assert.ok(!isDenial(await admit()))
})
