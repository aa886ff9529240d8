import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson, rfc3339Micros, TestClock } from '@plat/core'
import { type Hold, LocalLimits } from '@plat/state'
import fc from 'fast-check'
import { isDenial, Snapshots } from '../../call/index.ts'
import { Spending } from './book/spending.ts'
import { decodePricing } from './pricing/decode.ts'
import { costOf } from './pricing/price.ts'
import { pricingSlot } from './pricing/pricing.ts'
import { createReserveStage } from './stage.ts'
import { budgetParts, callOf, demandOf, modelTarget, outcomeOf } from './testing.ts'

const KEY = 'usd/session/default/assistant/s'
const CAP = 20_000

const price = fc.integer({ min: 1, max: 40_000_000 }).map((micros) => (micros / 1e6).toFixed(6))
const arrival = fc.record({
  do: fc.constant('arrive' as const),
  inputTokens: fc.nat({ max: 300 }),
  maxTokens: fc.option(fc.integer({ min: 1, max: 500 }), { nil: null }),
  choices: fc.integer({ min: 1, max: 3 }),
})
const ending = fc.record({
  do: fc.constantFrom('reports' as const, 'is aborted' as const, 'fails' as const, 'is never forwarded' as const),
  which: fc.nat(),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
})
const step = fc.oneof(
  { weight: 3, arbitrary: arrival },
  { weight: 3, arbitrary: ending },
  fc.record({ do: fc.constant('crash' as const) }),
)

/** Limits of a gateway and the ledger that rebuilds them. */
class Gateway {
  readonly clock = new TestClock()
  readonly snapshots = new Snapshots()
  readonly ledger: object[] = []
  limits = new LocalLimits({ clock: this.clock })
  open: {
    readonly call: ReturnType<typeof callOf>
    readonly hold: Hold
    readonly tokens: { input: number; output: number }
  }[] = []
  count = 0

  constructor(models: object) {
    const decoded = decodePricing(Buffer.from(JSON.stringify({ version: 1, currency: 'USD', id: 'p', models })))
    if ('problems' in decoded) assert.fail(decoded.problems.join())
    this.snapshots.publish(pricingSlot, decoded.table)
  }

  stage(demand: Parameters<typeof demandOf>[0]) {
    const { limits, clock } = this
    const options = { limits, clock, ...budgetParts(CAP), denied() {}, metered() {}, rateLimited() {} }
    return createReserveStage({ ...options, demandOf: () => demandOf(demand) })
  }

  arrive({
    inputTokens,
    maxTokens,
    choices,
  }: {
    inputTokens: number
    maxTokens: number | null
    choices: number
  }): void {
    const demand = { inputTokens, maxTokens, choices }
    const call = callOf(`c${this.count++}`, {
      clock: this.clock,
      snapshot: this.snapshots.current,
      facts: { target: modelTarget },
    })
    const verdict = this.stage(demand).admit(call)
    if (isDenial(verdict)) return
    assert.ok(typeof verdict === 'object' && !(verdict instanceof Promise) && !('until' in verdict))
    const { hold } = 'body' in verdict ? verdict.facts : verdict
    const limit = 'body' in verdict ? Number(verdict.body.value) : maxTokens
    assert.ok(hold !== null && limit !== null)
    this.open.push({
      call: { ...call, facts: { ...call.facts, hold } },
      hold,
      tokens: { input: inputTokens, output: limit * choices },
    })
    this.#write({
      kind: 'intent',
      call: call.id,
      holds: hold.items.map(({ key, window, cap, amount, unit }) => ({ key, window, cap, amount, unit })),
    })
  }

  /** Ends one call. Returns its minimum and maximum cost. */
  end(how: 'reports' | 'is aborted' | 'fails' | 'is never forwarded', which: number, part: number): void {
    const [one] = this.open.splice(which % Math.max(1, this.open.length), 1)
    if (one === undefined) return
    const { call, hold, tokens } = one
    const usage = { ...noTokens, prompt: Math.floor(part * tokens.input), completion: Math.floor(part * tokens.output) }
    const modelPrice = call.snapshot.get(pricingSlot).model({ key: 'openai/m', scopes: [] })
    assert.ok(modelPrice !== null)
    const costMicros = costOf(modelPrice, usage)
    const outcomes = {
      reports: { usageSource: 'reported', costMicros },
      // An estimate may be far off; the hold bounds it.
      'is aborted': { usageSource: 'estimated', costMicros: costMicros * 10, result: 'cancelled' },
      fails: { result: 'failed' },
      'is never forwarded': { forwarded: false, result: 'denied' },
    } as const
    this.stage({ inputTokens: tokens.input }).settle?.(call, outcomeOf(outcomes[how]))
    assert.ok(hold.settled !== null)
    const spent = hold.settled.get(KEY) ?? Number.NaN
    assert.ok(spent <= (hold.items[0]?.amount ?? 0))
    if (how === 'reports') assert.equal(spent, costMicros)
    if (how === 'is never forwarded') assert.equal(spent, 0)
    this.#write({ kind: 'outcome', call: call.id, costMicros: spent, settled: Object.fromEntries(hold.settled) })
  }

  crash(): void {
    this.limits = new LocalLimits({ clock: this.clock })
    const spending = new Spending({ limits: this.limits, alerts: { restore() {} }, saved: null })
    for (const record of this.ledger) spending.see(Buffer.from(canonicalJson(record)), { seq: 0, hash: '' })
    spending.finish()
    for (const { call, hold } of this.open) {
      this.#write({ kind: 'outcome', call: call.id, settled: { [KEY]: hold.items[0]?.amount } })
    }
    this.open = []
  }

  /** Expected amounts by the ledger: settled by outcomes, and held by open calls. */
  expected(): { spent: number; held: number } {
    let spent = 0
    for (const record of this.ledger) if ('settled' in record) spent += Number(Object.values(record.settled ?? {})[0])
    const held = this.open.reduce((sum, { hold }) => sum + (hold.items[0]?.amount ?? 0), 0)
    return { spent, held }
  }

  #write(record: object): void {
    this.ledger.push({ at: rfc3339Micros(this.clock.now()), ...record })
  }
}

const noTokens = { prompt: 0, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 }

test('no sequence of calls, prices, outcomes and crashes exceeds the budget', async () => {
  await fc.assert(
    fc.asyncProperty(price, price, fc.array(step, { maxLength: 40 }), async (input, output, steps) => {
      const gateway = new Gateway({ 'openai/m': { input, output } })
      for (const it of steps) {
        if (it.do === 'arrive') gateway.arrive(it)
        else if (it.do === 'crash') gateway.crash()
        else gateway.end(it.do, it.which, it.part)
        const used = await gateway.limits.used(KEY, 'life')
        assert.deepEqual(used, gateway.expected())
        assert.ok(used.spent + used.held <= CAP)
      }
      while (gateway.open.length > 0) gateway.end('fails', 0, 0)
      assert.equal((await gateway.limits.used(KEY, 'life')).held, 0)
      assert.equal(gateway.limits.openHolds, 0)
    }),
    { numRuns: 200 },
  )
})
