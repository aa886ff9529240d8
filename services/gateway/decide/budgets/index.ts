import { type Clock, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Limits, WindowCalendar } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { Call, DemandOf, PricedModel, Snapshots, Tenancy, Usage } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import { type Charging, createCharging } from './book/charge.ts'
import { type KeeperOptions, keepTotals } from './book/keeper.ts'
import { watchBudgets } from './caps/watch.ts'
import { createBatchPrice, createMediaPrice, createPrice, createToolMeter } from './meter.ts'
import { createBudgetMetrics } from './metrics.ts'
import { type BudgetsConfig, type OpeningLimits, statePath, totalOf } from './opening.ts'
import { withContexts } from './pricing/context.ts'
import { createAffords } from './pricing/most-expensive.ts'
import { pricingSlot, watchPricing } from './pricing/pricing.ts'
import { createBudgetRoutes } from './routes.ts'
import { alertReached, sendAlerts } from './send-alerts.ts'
import { createReserveStage } from './stage.ts'

export type { Charging } from './book/charge.ts'
export { QuoteSum } from './book/quote.ts'
export { budgetCurrencyOf } from './currency.ts'
export { type OpeningLimits, openLimits } from './opening.ts'
export { pricingSlot } from './pricing/pricing.ts'

export interface BudgetsOptions extends OpeningLimits, Pick<KeeperOptions, 'placed' | 'flushed' | 'tenantLedgers'> {
  readonly config: BudgetsConfig
  readonly ledgers: Ledgers
  /** Files of all ledgers. */
  readonly ledgerPaths: () => readonly string[]
  readonly tenancy: Tenancy
  readonly demandOf: DemandOf
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface Budgets {
  readonly stage: Stage<'reserve', 'identity' | 'target' | 'decision', 'hold'>
  /** Returns the price of a model call's usage, in micro-units. */
  readonly price: (call: Call<'target'>, usage: Usage) => number
  /** Returns the price of a call for images or sound, in micro-units; null: unknown. */
  readonly mediaPrice: ReturnType<typeof createMediaPrice>
  /** Returns whether the call's hold covers it at the price `<provider>/<model>`. */
  readonly affords: (call: Call<'target' | 'hold'>, priced: PricedModel) => boolean
  /** Counters other than money: requests per minute of an endpoint. */
  readonly limits: Limits
  readonly toolMeter: Review<'target'>
  /** Returns the price of the usage of a request in a batch, in micro-units; 0 without a price. */
  readonly batchPrice: (priced: PricedModel, options: readonly string[], usage: Usage) => number
  /** Charges usage outside calls. */
  readonly charging: Charging
  readonly routes: AdminRoutes
  /** Loads prices and budgets. Call before the gateway serves. */
  check(): Promise<void>
  /** Saves the totals. Call after the last call and before the ledger is closed. */
  close(): Promise<void>
}

/** Budgets, rates and prices (docs/spec/gateway.md, "Revocations, budgets, cost"). */
export async function createBudgets(options: BudgetsOptions): Promise<Budgets> {
  const { config, counters, snapshots, clock, log } = options
  const demandOf = withContexts(options.demandOf)
  const metrics = createBudgetMetrics(options.metrics)
  const pricing = watchPricing({ config, snapshots, clock, log })
  const budgets = watchBudgets({ config, snapshots, clock, log })
  const table = () => budgets.of(snapshots.current)
  const calendar = new WindowCalendar(config.budgetTimezone)
  const currency = () => snapshots.current.get(pricingSlot).currency
  let totalMicros = await totalOf(options)
  const metered = (micros: number) => {
    totalMicros += micros
    metrics.metered(totalMicros / 1e6)
  }
  metered(0)
  sendAlerts(options, metrics, currency)
  const everyMs = config.finopsSaveSeconds * 1000
  const { earlier } = options.spending
  const keeper = keepTotals({
    ...options,
    ...(earlier && { earlier }),
    path: statePath(config),
    everyMs,
    totalMicros: () => totalMicros,
  })
  return {
    stage: createReserveStage({
      limits: counters.limits,
      budgetsOf: budgets.of,
      ...{ calendar, templates: options.templates },
      demandOf,
      clock,
      denied: (scope) => metrics.denied(scope),
      rateLimited: () => metrics.rateLimited(),
      metered,
      onFault: (error) => log.error({ error: reasonOf(error) }, 'spending of a call could not be counted'),
    }),
    ...{ price: createPrice(demandOf), mediaPrice: createMediaPrice(demandOf), affords: createAffords(demandOf) },
    limits: counters.limits,
    ...{ toolMeter: createToolMeter(), batchPrice: createBatchPrice(snapshots) },
    charging: createCharging({ limits: counters.limits, table, calendar, snapshots, clock, metered }),
    routes: createBudgetRoutes({ counters, table, calendar, currency, now: () => clock.now() }),
    async check() {
      // Prices first: budgets may depend on their currency.
      await pricing.check()
      await budgets.check()
      await alertReached(options, table(), calendar)
    },
    async close() {
      pricing.stop()
      budgets.stop()
      await keeper.close()
    },
  }
}
