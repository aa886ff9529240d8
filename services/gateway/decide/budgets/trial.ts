import { quantityToMicros } from '@plat/core'
import { type Hold, type HoldItem, isShort, LocalLimits, type Short, WindowCalendar } from '@plat/state'
import { type Decision, type Denial, deny, type Identity, isDenial, type Target } from '../../call/index.ts'
import { type Applied, BudgetItem, everySession } from './caps/budget.ts'
import { decodeBudgets } from './caps/decode.ts'
import { BudgetTable } from './caps/table.ts'
import { decodePricing } from './pricing/decode.ts'
import { costAtMost } from './pricing/price.ts'
import { noPrices, type PriceTable } from './pricing/table.ts'
import { budgetUsedUp, limitUsedUp } from './refusals.ts'

/** Files and keys of the limits that are tried. */
export interface LimitFiles {
  /** Content of `budgetsFile`. */
  readonly budgets: Uint8Array
  /** Content of `pricingFile`; null: there is none. */
  readonly prices: Uint8Array | null
  readonly sessionBudgetUSD: number
  readonly budgetTimezone: string
}

/** Usage of earlier calls of the caller, and the tokens of this one. */
export interface UsedBefore {
  /** Calls in the current window, by rule (`slow`, or `<namespace>/<policy>/slow`). */
  readonly rates: Readonly<Record<string, number>>
  /** Money or tokens in the current window, by the ID of the budget. */
  readonly budgets: Readonly<Record<string, string | number>>
  /** Tokens of a call of a model; null: budgets do not limit it. */
  readonly tokens: { readonly input: number; readonly output: number } | null
}

/** A call that policies allow. */
export interface LimitedCall {
  readonly identity: Identity
  readonly target: Target
  readonly decision: Decision
  /** `<provider>/<model>`; null: the call of a tool. */
  readonly model: string | null
  readonly used: UsedBefore
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Rates and budgets without a running gateway: their counters are given. */
export class LimitsTrial {
  readonly #table: BudgetTable
  readonly #prices: PriceTable
  readonly #calendar: WindowCalendar

  private constructor(table: BudgetTable, prices: PriceTable, zone: string) {
    this.#table = table
    this.#prices = prices
    this.#calendar = new WindowCalendar(zone)
  }

  /** Reads the files as the gateway does. Returns every problem, one line each, if there are any. */
  static read(files: LimitFiles): LimitsTrial | readonly string[] {
    const decoded = decodeBudgets(files.budgets)
    if ('problems' in decoded) return decoded.problems
    const prices = files.prices === null ? { table: noPrices } : decodePricing(files.prices)
    if ('problems' in prices) return prices.problems
    const micros = quantityToMicros(String(files.sessionBudgetUSD)) ?? Number.MAX_SAFE_INTEGER
    const ofSessions = files.sessionBudgetUSD === 0 ? [] : [{ cap: everySession(micros), match: {} }]
    const table = new BudgetTable(decoded.currency, [...ofSessions, ...decoded.entries])
    return new LimitsTrial(table, prices.table, files.budgetTimezone)
  }

  /** Returns the denial of the first limit that is used up, null if there is none, or a text with what is wrong with the given counters. */
  judge(call: LimitedCall): Denial | string | null {
    const costs = this.#costsOf(call)
    if (isDenial(costs)) return costs
    const items = [...call.decision.rates, ...costs]
    const limits = new LocalLimits({ clock: { now: () => call.now }, zone: this.#calendar.zone })
    const unknown = restore(limits, items, call)
    if (unknown !== null) return unknown
    const result = limits.take('trial', items, call.now + 1)
    return isShort(result) ? this.#denial(call, items, result) : released(result)
  }

  /** Amounts that the call holds of the budgets of its caller. */
  #costsOf({ identity, target, model, used, now }: LimitedCall): readonly BudgetItem[] | Denial {
    const isModel = target.kind === 'model'
    if (isModel && used.tokens === null) return []
    const budgets = this.#table.matching(identity, model)
    const tokens = used.tokens === null ? 0 : used.tokens.input + used.tokens.output
    const micros = isModel ? this.#priceOf(model ?? '', target, used) : this.#toolPrice(target)
    if (micros === null && budgets.some(isMoney)) return deny('price_unknown', `no price is known for ${model}`)
    const itemOf = (applied: Applied) => {
      const amount = isMoney(applied) ? (micros ?? 0) : tokens
      return new BudgetItem(applied, applied.budget.windowAt(now, this.#calendar), amount)
    }
    return budgets.map(itemOf).filter(({ amount }) => amount > 0)
  }

  #priceOf(model: string, { key }: Target, { tokens }: UsedBefore): number | null {
    const price = this.#prices.model({ key: model, scopes: [`llm/${key}#`] })
    return price === null || tokens === null ? null : costAtMost(price, tokens.input, tokens.output)
  }

  #toolPrice({ key, tool }: Target): number {
    return tool === null ? 0 : this.#prices.tool(`${key}/${tool}`)
  }

  #denial({ decision, now }: LimitedCall, items: readonly HoldItem[], short: Short): Denial {
    const item = items.find(({ key }) => key === short.key)
    if (item instanceof BudgetItem) return budgetUsedUp(item, short, { currency: this.#prices.currency, now })
    return limitUsedUp(item, short, { policy: decision.policy, rule: decision.rule, now })
  }
}

/** Counts what was used before. Returns a text with the first name that no limit of the call has, or whose amount is invalid; null: none. */
function restore(limits: LocalLimits, items: readonly HoldItem[], { used, now }: LimitedCall): string | null {
  const given = { ...used.rates, ...used.budgets }
  for (const [name, amount] of Object.entries(given)) {
    const counted = items.filter((item) => namesOf(item).includes(name))
    if (counted.length === 0) {
      const known = items.map((item) => namesOf(item)[0] ?? '')
      return `no limit of this call is named ${name}; ${known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`}`
    }
    for (const item of counted) {
      const units = item.unit === 'micros' ? quantityToMicros(String(amount)) : Number(amount)
      if (units === null || !Number.isSafeInteger(units) || units < 0) return `${name}: ${amount} is not an amount`
      limits.restore(item, units, now)
    }
  }
  return null
}

/** Names of a limit in tests: the ID of a budget, or a rule with and without its policy. */
function namesOf(item: HoldItem): readonly string[] {
  if (item instanceof BudgetItem) return [item.budget.id]
  const rule = item.template?.slice('rate/'.length) ?? item.key
  return [rule.slice(rule.lastIndexOf('/') + 1), rule]
}

function isMoney({ budget }: Applied): boolean {
  return budget.unit === 'micros'
}

function released(hold: Hold): null {
  void hold.release()
  return null
}
