import { type Clock, isPromise } from '@plat/core'
import {
  type Hold,
  type HoldItem,
  isShort,
  type Limits,
  PoolFullError,
  type Short,
  type WindowCalendar,
} from '@plat/state'
import {
  type Body,
  type Call,
  callerOf,
  callingAgentOf,
  type DemandOf,
  type Denial,
  isDenial,
  type MediaDemand,
  type ModelDemand,
  type Outcome,
  type Snapshot,
} from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import { Quote } from './book/quote.ts'
import type { TemplateCounters } from './book/template-counters.ts'
import { type Applied, BudgetItem, isMoney, type Scope } from './caps/budget.ts'
import type { BudgetTable } from './caps/table.ts'
import { minuteItem, smaller } from './minutes.ts'
import { mediaHold } from './pricing/media.ts'
import { mostExpensiveFirst } from './pricing/most-expensive.ts'
import { costAtMost, type ModelPrice, outputThatFits } from './pricing/price.ts'
import { pricingSlot } from './pricing/pricing.ts'
import {
  beyondMinute,
  budgetUsedUp,
  foreignBudgets,
  limitUsedUp,
  MAX_COUNTERS,
  tooManyCounters,
  tooManyHolds,
  tooManySubjects,
  unbounded,
  uncounted,
  unpriced,
  unreadBudgets,
} from './refusals.ts'
import { isKnown, isRefused } from './usage.ts'

/** Output tokens held for a model call if neither caller nor route sets a limit. */
const DEFAULT_MAX_TOKENS = 4096
/** Calls that could generate fewer tokens than this are refused instead of clamped. */
const MIN_TOKENS = 64
/** Lifetime of a hold without an owner, in milliseconds: longer than any call. */
const HOLD_LIFE_MS = 24 * 3_600_000

export interface ReserveOptions {
  readonly limits: Limits
  /** Returns null until `budgetsFile` has been read. */
  readonly budgetsOf: (snapshot: Snapshot) => BudgetTable | null
  readonly calendar: WindowCalendar
  readonly templates: TemplateCounters
  readonly demandOf: DemandOf
  readonly clock: Clock
  /** Called when a budget of this scope refuses a call. */
  readonly denied: (scope: Scope) => void
  /** Called when a session has used up its tokens per minute. */
  readonly rateLimited: () => void
  /** Called with each metered amount, in micro-units. */
  readonly metered: (micros: number) => void
  /** Called when counters fail. */
  readonly onFault?: (error: unknown) => void
}

/** Each item is settled at its held amount. */
const AS_HELD: ReadonlyMap<string, number> = new Map()

type DecidedCall = Call<'identity' | 'target' | 'decision'>
type Reserved = Verdict<'hold'>

/** A model call with its bounds. */
interface BudgetedDemand {
  readonly demand: ModelDemand
  readonly budgets: readonly Applied[]
  /** Prices of the endpoints that may respond, most expensive first; that one is held. */
  readonly prices: readonly [ModelPrice, ...ModelPrice[]]
  /** Output tokens per choice. */
  readonly maxTokens: number
  /** Number of retries with a lower limit. */
  readonly again: number
}

/**
 * Holds cost, usage and policy rates of a call in one atomic step before anything is forwarded, and settles when the call ends. A model
 * call that requests more output than remains is clamped: the new limit is written into its body.
 */
export function createReserveStage(
  options: ReserveOptions,
): Stage<'reserve', 'identity' | 'target' | 'decision', 'hold'> {
  const reserve = new Reserve(options)
  return stage({
    name: 'reserve',
    needs: ['identity', 'target', 'decision'],
    gives: ['hold'],
    skipped: { hold: null },
    admit: (call) => reserve.admit(call),
    settle: (call: Call<'identity' | 'target' | 'decision' | 'hold'>, outcome) => reserve.settle(call, outcome),
  })
}

class Reserve {
  readonly #options: ReserveOptions

  constructor(options: ReserveOptions) {
    this.#options = options
  }

  admit(call: DecidedCall): Reserved | Promise<Reserved> {
    const demand = this.#options.demandOf(call)
    return demand === null ? this.#admitTool(call) : this.#admitModel(call, demand)
  }

  #admitTool(call: DecidedCall): Reserved | Promise<Reserved> {
    const rates = ratesOf(call)
    const { key, tool } = call.facts.target
    const micros = tool === null ? 0 : call.snapshot.get(pricingSlot).tool(`${key}/${tool}`)
    if (micros === 0) return rates.length === 0 ? NOTHING_HELD : this.#take(call, rates, null)
    const found = this.#budgetsOf(call, null)
    if (isDenial(found)) return found
    const items = this.#items(call, found, { micros, tokens: 0 })
    return items.length === 0 ? NOTHING_HELD : this.#take(call, items, null)
  }

  #admitModel(call: DecidedCall, demand: ModelDemand): Reserved | Promise<Reserved> {
    const budgets = this.#budgetsOf(call, demand.priced.key)
    if (isDenial(budgets)) return budgets
    if (demand.media !== null) return this.#admitMedia(call, demand, demand.media, budgets.filter(isMoney))
    const limit = smaller(demand.maxTokens, demand.routeMaxTokens)
    if (budgets.length === 0 && demand.tokensPerMinute === null) {
      const { rates } = call.facts.decision
      const body = limit === null ? null : clamped(demand, limit)
      return rates.length === 0 ? given(null, body) : this.#take(call, rates, null, body)
    }
    if (budgets.length > 0 && !demand.bounded) return unbounded(demand)
    const maxTokens = withinMinute(demand, limit ?? DEFAULT_MAX_TOKENS)
    if (maxTokens === null) return this.#tooLong(demand)
    const prices = budgets.some(isMoney) ? mostExpensiveFirst(call.snapshot.get(pricingSlot), demand, maxTokens) : FREE
    return prices === null ? unpriced(demand) : this.#reserve(call, { demand, budgets, prices, maxTokens, again: 0 })
  }

  /** Images and sound count in budgets of money alone. */
  #admitMedia(
    call: DecidedCall,
    demand: ModelDemand,
    media: MediaDemand,
    budgets: readonly Applied[],
  ): Reserved | Promise<Reserved> {
    const micros = budgets.length === 0 ? 0 : mediaHold(call.snapshot.get(pricingSlot), demand, media)
    if (isDenial(micros)) return micros
    const items = this.#items(call, budgets, { micros, tokens: 0 })
    return items.length === 0 ? NOTHING_HELD : this.#take(call, items, null)
  }

  /** Returns the budgets of the caller, or a denial while they cannot be applied. */
  #budgetsOf(call: DecidedCall, model: string | null): readonly Applied[] | Denial {
    const table = this.#options.budgetsOf(call.snapshot)
    if (table === null) return unreadBudgets()
    const found = table.matching(call.facts.identity, model)
    if (found.length === 0 || table.currency === null) return found
    const { currency } = call.snapshot.get(pricingSlot)
    return currency !== table.currency && found.some(isMoney) ? foreignBudgets(table.currency, currency) : found
  }

  #reserve(call: DecidedCall, budgeted: BudgetedDemand): Reserved | Promise<Reserved> {
    const { demand, budgets, prices, maxTokens } = budgeted
    const [price] = prices
    const output = maxTokens * demand.choices
    const micros = costAtMost(price, demand.inputTokens, output)
    if (micros === null) return unpriced(demand)
    const tokens = demand.inputTokens + output
    const items = this.#items(call, budgets, { micros, tokens }, demand.tokensPerMinute)
    return items.length === 0
      ? given(null, clamped(demand, maxTokens))
      : this.#take(call, items, budgeted, clamped(demand, maxTokens))
  }

  /** Items for the policy rates and for each budget of the call. */
  #items(
    call: DecidedCall,
    budgets: readonly Applied[],
    { micros, tokens }: { readonly micros: number; readonly tokens: number },
    tokensPerMinute: number | null = null,
  ): readonly HoldItem[] {
    const items = [...ratesOf(call)]
    const now = this.#options.clock.now()
    for (const applied of budgets) {
      const { budget } = applied
      const amount = budget.unit === 'micros' ? micros : tokens
      if (amount > 0) items.push(new BudgetItem(applied, budget.windowAt(now, this.#options.calendar), amount))
    }
    if (tokensPerMinute !== null) items.push(minuteItem(call, now, tokensPerMinute, tokens))
    return items
  }

  /** Returns synchronously if the limits do. `budgeted` is null for calls that cannot be clamped. */
  #take(
    call: DecidedCall,
    items: readonly HoldItem[],
    budgeted: BudgetedDemand | null,
    body: Body | null = null,
  ): Reserved | Promise<Reserved> {
    if (call.operation === 'model.line') return given(new Quote(call.id, items), body)
    const { limits, clock, templates, calendar } = this.#options
    const { identity } = call.facts
    if (items.length > MAX_COUNTERS) return tooManySubjects()
    const noRoom = templates.admit(items, callingAgentOf(identity))
    if (noRoom !== null) {
      this.#settleTemplates(call, items, () => 0)
      return tooManyCounters(noRoom.item, calendar.zone, clock.now())
    }
    let answer: ReturnType<Limits['take']>
    try {
      answer = limits.take(call.id, items, clock.now() + HOLD_LIFE_MS, [callingAgentOf(identity), callerOf(identity)])
    } catch (error) {
      return this.#uncounted(call, items, error)
    }
    if (isPromise(answer)) {
      return answer.then(
        (late) => this.#onHeld(call, late, { items, budgeted, body }),
        (error: unknown) => this.#uncounted(call, items, error),
      )
    }
    return this.#onHeld(call, answer, { items, budgeted, body })
  }

  #onHeld(
    call: DecidedCall,
    answer: Hold | Short,
    { items, budgeted, body }: { items: readonly HoldItem[]; budgeted: BudgetedDemand | null; body: Body | null },
  ): Reserved | Promise<Reserved> {
    if (!isShort(answer)) return given(answer, body)
    this.#settleTemplates(call, items, () => 0)
    return this.#short(call, answer, items, budgeted)
  }

  /** Retries with the amount left of the exhausted budget as long as enough output fits. The next attempt may exhaust another budget. */
  #short(
    call: DecidedCall,
    short: Short,
    items: readonly HoldItem[],
    budgeted: BudgetedDemand | null,
  ): Reserved | Promise<Reserved> {
    const item = items.find(({ key }) => key === short.key)
    if (!(item instanceof BudgetItem)) return this.#limited(call, item, short)
    const cheaper = item.unit === 'micros' ? withoutDearest(budgeted) : null
    if (cheaper !== null) return this.#reserve(call, cheaper)
    const maxTokens = budgeted === null ? null : fits(budgeted, item, short.left)
    if (budgeted === null || maxTokens === null) return this.#usedUp(call, item, short)
    return this.#reserve(call, { ...budgeted, maxTokens, again: budgeted.again + 1 })
  }

  /** Denial for a policy rate or the tokens of the minute. */
  #limited({ facts: { decision } }: DecidedCall, item: HoldItem | undefined, short: Short): Denial {
    if (item?.unit === 'tokens') this.#options.rateLimited()
    return limitUsedUp(item, short, { policy: decision.policy, rule: decision.rule, now: this.#options.clock.now() })
  }

  #usedUp(call: DecidedCall, item: BudgetItem, short: Short): Denial {
    this.#options.denied(item.budget.scope)
    const { currency } = call.snapshot.get(pricingSlot)
    return budgetUsedUp(item, short, { currency, now: this.#options.clock.now() })
  }

  #uncounted(call: DecidedCall, items: readonly HoldItem[], error: unknown): Denial {
    this.#settleTemplates(call, items, () => 0)
    if (error instanceof PoolFullError) return tooManyHolds()
    this.#options.onFault?.(error)
    return uncounted()
  }

  #tooLong(demand: ModelDemand): Denial {
    this.#options.rateLimited()
    return beyondMinute(demand)
  }

  settle(call: Call<'identity' | 'target' | 'hold'>, outcome: Outcome): void | Promise<void> {
    const { hold } = call.facts
    if (call.operation === 'model.line') return
    if (!outcome.forwarded) {
      this.#settleTemplates(call, hold?.items ?? [], () => 0)
      return hold?.release()
    }
    const held = hold?.items.find(({ unit }) => unit === 'micros')
    const micros = held === undefined ? outcome.costMicros : this.#spent(call, held.amount, outcome)
    if (micros > 0) this.#options.metered(micros)
    if (hold === null) return
    const spent = this.#spentOf(call, hold, micros, outcome)
    // Rates are spent as held.
    this.#settleTemplates(call, hold.items, ({ key, amount }) => spent.get(key) ?? amount)
    return hold.settle(spent)
  }

  /** Spent money and tokens by key. */
  #spentOf(
    call: Call<'target' | 'hold'>,
    { items }: Hold,
    micros: number,
    outcome: Outcome,
  ): ReadonlyMap<string, number> {
    if (items.every(({ unit }) => unit === 'calls')) return AS_HELD
    const spent = new Map<string, number>()
    for (const { key, unit, amount } of items) {
      if (unit === 'micros') spent.set(key, micros)
      else if (unit === 'tokens') spent.set(key, this.#used(call, amount, outcome))
    }
    return spent
  }

  #settleTemplates(
    { facts: { identity } }: Call<'identity'>,
    items: readonly HoldItem[],
    spentOf: (item: HoldItem) => number,
  ): void {
    this.#options.templates.settle(items, callingAgentOf(identity), spentOf)
  }

  /** Returns the cost of a forwarded call: as reported, else the bound of its prompt, which the upstream has read, and the observed text. */
  #spent(call: Call<'target' | 'hold'>, held: number, outcome: Outcome): number {
    if (isKnown(outcome)) return outcome.costMicros
    if (isRefused(outcome)) return Math.min(held, outcome.costMicros)
    const demand = this.#options.demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(demand.priced, demand.options)
    if (demand === null || price === null || demand.media !== null) return held
    const bound = costAtMost(price, demand.inputTokens, outcome.usage?.completion ?? 0)
    return Math.min(held, Math.max(outcome.costMicros, bound ?? held))
  }

  /** Returns the tokens of a forwarded call in the same way. */
  #used(call: Call<'target' | 'hold'>, held: number, outcome: Outcome): number {
    const { usage } = outcome
    const tokens = usage === null ? 0 : usage.prompt + usage.completion
    if (isKnown(outcome)) return tokens
    if (isRefused(outcome)) return Math.min(held, tokens)
    const prompt = this.#options.demandOf(call)?.inputTokens ?? held
    return Math.min(held, Math.max(tokens, prompt + (usage?.completion ?? 0)))
  }
}

/** Calls of unpriced tools are free. */
const FREE: BudgetedDemand['prices'] = [
  { base: { input: 0n, output: 0n, cachedRead: 0n, cachedWrite: 0n, reasoning: 0n }, tiers: [], perCall: 0 },
]

/** Rates of the policy, and holds of built-in servers. */
function ratesOf({ facts: { decision, target } }: DecidedCall): readonly HoldItem[] {
  const { requirements } = target
  return requirements === undefined || requirements.holds.length === 0
    ? decision.rates
    : [...decision.rates, ...requirements.holds]
}

const NOTHING_HELD = { hold: null } as const

/** Drops the most expensive endpoint: another one may fit the remaining budget. Returns null if there is no other. */
function withoutDearest(budgeted: BudgetedDemand | null): BudgetedDemand | null {
  const [, next, ...rest] = budgeted?.prices ?? []
  return budgeted === null || next === undefined ? null : { ...budgeted, prices: [next, ...rest] }
}

/** Returns the output tokens per choice that the remaining budget allows; null if too few, or after repeated conflicts. */
function fits(
  { demand, budgets, prices, maxTokens, again }: BudgetedDemand,
  { budget }: BudgetItem,
  left: number,
): number | null {
  if (again >= budgets.length) return null
  const [price] = prices
  const output = budget.unit === 'micros' ? outputThatFits(price, demand.inputTokens, left) : left - demand.inputTokens
  return enough(Math.floor(output / demand.choices), maxTokens)
}

/** Clamps to the session's tokens per minute. Returns null if the prompt alone leaves too little. */
function withinMinute({ tokensPerMinute, inputTokens, choices }: ModelDemand, maxTokens: number): number | null {
  return tokensPerMinute === null ? maxTokens : enough(Math.floor((tokensPerMinute - inputTokens) / choices), maxTokens)
}

function enough(output: number, wanted: number): number | null {
  return output < Math.min(MIN_TOKENS, wanted) ? null : Math.min(output, wanted)
}

/** Returns null if the caller requested no more than that. */
function clamped(demand: ModelDemand, maxTokens: number): Body | null {
  return demand.maxTokens !== null && demand.maxTokens <= maxTokens ? null : demand.clamp(maxTokens)
}

function given(hold: Hold | null, body: Body | null): Reserved {
  return body === null ? { hold } : { kind: 'replace', body, facts: { hold } }
}
