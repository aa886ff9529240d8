import { type Clock, quantityToMicros } from '@plat/core'
import type { Log } from '@plat/process'
import { LocalLimits } from '@plat/state'
import type { Call, Snapshots, Usage } from '../../call/index.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import type { DemandOf } from './demand.ts'
import { createPrice, createToolMeter } from './meter.ts'
import { watchPricing } from './pricing/pricing.ts'
import { Spending } from './spending.ts'
import { createReserveStage } from './stage.ts'

export { budgetsBlock } from './config.ts'
export { budgetCurrencyOf } from './currency.ts'
export type { DemandOf, ModelDemand } from './demand.ts'
export { pricingSlot } from './pricing/pricing.ts'

/** What the feature tells metrics; compose maps it to rows. */
export interface BudgetMetrics {
  /** `plat_gateway_metered_cost_usd`: all that was ever metered, in the currency. */
  metered(total: number): void
  /** `plat_gateway_budget_denied_total{scope}`. */
  denied(scope: 'session'): void
}

export interface SpendingOptions {
  readonly clock: Clock
  readonly log: Log
}

/** Limits before the ledger is open: what `see` is shown of it is counted in. */
export interface OpeningLimits {
  readonly limits: LocalLimits
  readonly spending: Spending
}

/** Open the ledger with `spending.see` as its `onRecord`, then give both to `createBudgets`. */
export function openLimits({ clock, log }: SpendingOptions): OpeningLimits {
  const limits = new LocalLimits({
    clock,
    onOverrun: (overrun) => log.warn({ ...overrun }, 'a call cost more than was held for it; the whole cost counts'),
  })
  return { limits, spending: new Spending(limits) }
}

export interface BudgetsOptions extends OpeningLimits {
  readonly config: {
    readonly sessionBudgetUSD: number
    readonly pricingFile: string
    readonly policyReloadSeconds: number
  }
  readonly demandOf: DemandOf
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: BudgetMetrics
}

export interface Budgets {
  readonly stage: Stage<'reserve', 'identity' | 'target' | 'decision', 'hold'>
  /** Prices the usage of a model call, in micro-units. */
  readonly price: (call: Call<'target'>, usage: Usage) => number
  readonly toolMeter: Review<'target'>
  /** Reads the prices now; the first check comes before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/** Budgets, rates and prices (document 3, "Revocations, budgets, cost"). */
export function createBudgets(options: BudgetsOptions): Budgets {
  const { config, limits, spending, demandOf, snapshots, clock, log, metrics } = options
  const pricing = watchPricing({ config, snapshots, clock, log })
  let totalMicros = spending.finish()
  metrics.metered(totalMicros / 1e6)
  const metered = (micros: number) => {
    totalMicros += micros
    metrics.metered(totalMicros / 1e6)
  }
  const sessionCapMicros = capOf(config.sessionBudgetUSD)
  return {
    stage: createReserveStage({
      limits,
      sessionCapMicros,
      demandOf,
      clock,
      denied: (scope) => metrics.denied(scope),
      metered,
    }),
    price: createPrice(demandOf),
    toolMeter: createToolMeter(),
    check: () => pricing.check(),
    close: () => pricing.stop(),
  }
}

/** 0 is no limit; a limit below a micro-unit is one of nothing; one beyond what can be counted can never be reached. */
function capOf(budget: number): number | null {
  return budget === 0 ? null : (quantityToMicros(String(budget)) ?? Number.MAX_SAFE_INTEGER)
}
