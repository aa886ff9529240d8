import { type Clock, type PoolObservers, quantityToMicros, reasonOf, watchedPool } from '@plat/core'
import { type Ledgers, tailLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import {
  type Limits,
  LocalLimits,
  type Overrun,
  type SharedLimits,
  type SharedLimitsOptions,
  WindowCalendar,
} from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { Call, Snapshots, Usage } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import { Alerts } from './alerts.ts'
import { type Charging, createCharging } from './book/charge.ts'
import { type Counters, localCounters, sharedCounters } from './book/counters.ts'
import { keepTotals } from './book/keeper.ts'
import { Spending } from './book/spending.ts'
import { readTotals, type SavedTotals } from './book/totals.ts'
import { BudgetItem, type Cap, everySession } from './caps/budget.ts'
import type { BudgetTable } from './caps/table.ts'
import { watchBudgets } from './caps/watch.ts'
import type { DemandOf, PricedModel } from './demand.ts'
import { createPrice, createToolMeter } from './meter.ts'
import { type BudgetMetrics, createBudgetMetrics } from './metrics.ts'
import { createAffords } from './pricing/dearest.ts'
import { pricingSlot, watchPricing } from './pricing/pricing.ts'
import { alertRecord } from './record.ts'
import { createBudgetRoutes } from './routes.ts'
import { createReserveStage } from './stage.ts'

export type { Charging } from './book/charge.ts'
export { budgetCurrencyOf } from './currency.ts'
export type { DemandOf } from './demand.ts'
export { pricingSlot } from './pricing/pricing.ts'

interface BudgetsConfig {
  readonly auditPath: string
  readonly sessionBudgetUSD: number
  readonly pricingFile: string
  readonly budgetsFile: string
  readonly budgetTimezone: string
  readonly budgetCurrency: string
  readonly finopsStatePath: string
  readonly finopsSaveSeconds: number
  readonly policyReloadSeconds: number
}

/** Limits before the ledger is open: what `see` is shown of it is counted in. */
export interface OpeningLimits {
  readonly limits: LocalLimits
  readonly counters: Counters
  readonly spending: Spending
  readonly alerts: Alerts
}

/** Open the ledger with `spending.see` as its `onRecord`, then give all of it to `createBudgets`. */
export async function openLimits(using: {
  readonly config: BudgetsConfig
  /** Where replicas count together; null: this one counts for itself. */
  readonly shared: { readonly rates: boolean; limits(options: SharedLimitsOptions): SharedLimits } | null
  readonly clock: Clock
  readonly log: Log
  readonly pools?: PoolObservers<'counters'>
}): Promise<OpeningLimits> {
  const { config, shared, clock, log, pools } = using
  const path = statePath(config)
  const saved = await readTotals(path)
  if (typeof saved === 'string')
    log.warn({ path, reason: saved }, 'the saved totals cannot be used: the ledger is read')
  const zone = config.budgetTimezone
  const alerts = new Alerts({ now: () => clock.now(), zone })
  const counting = {
    zone,
    onSpent: alerts.spent,
    onOverrun: (overrun: Overrun) =>
      log.warn({ ...overrun }, 'a call cost more than was held for it; the whole cost counts'),
  }
  const together = shared?.limits(counting) ?? null
  // Windows are over by the clock that names them.
  const limits = new LocalLimits({
    clock: together ?? clock,
    ...counting,
    counters: watchedPool({ name: 'counters', observer: pools?.of('counters') }),
  })
  const counters =
    together === null ? localCounters(limits) : sharedCounters(together, shared?.rates === true ? null : limits)
  return {
    limits,
    counters,
    alerts,
    spending: new Spending({ limits, alerts, saved: typeof saved === 'string' ? null : saved }),
  }
}

export interface BudgetsOptions extends OpeningLimits {
  readonly config: BudgetsConfig
  readonly ledgers: Ledgers
  /** The last record that the ledger has a place for. */
  readonly placed: () => SavedTotals['ledger']
  readonly demandOf: DemandOf
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface Budgets {
  readonly stage: Stage<'reserve', 'identity' | 'target' | 'decision', 'hold'>
  /** Prices the usage of a model call, in micro-units. */
  readonly price: (call: Call<'target'>, usage: Usage) => number
  /** Whether what is held for a model call covers it at the price `<provider>/<model>`. */
  readonly affords: (call: Call<'target' | 'hold'>, priced: PricedModel) => boolean
  /** Counts what is not money: the requests that an endpoint gets in a minute. */
  readonly limits: Limits
  readonly toolMeter: Review<'target'>
  /** For what was used without a call. */
  readonly charging: Charging
  readonly routes: AdminRoutes
  /** Reads prices and budgets now; the first check comes before the gateway serves. */
  check(): Promise<void>
  /** Saves the totals: after the last call, before the ledger is closed. */
  close(): Promise<void>
}

/** Budgets, rates and prices (docs/spec/gateway.md, "Revocations, budgets, cost"). */
export async function createBudgets(options: BudgetsOptions): Promise<Budgets> {
  const { config, counters, demandOf, snapshots, clock, log } = options
  const metrics = createBudgetMetrics(options.metrics)
  const pricing = watchPricing({ config, snapshots, clock, log })
  const budgets = watchBudgets({ config, session: capOf(config.sessionBudgetUSD), snapshots, clock, log })
  const calendar = new WindowCalendar(config.budgetTimezone)
  const currency = () => snapshots.current.get(pricingSlot).currency
  let totalMicros = await totalOf(options)
  const metered = (micros: number) => {
    totalMicros += micros
    metrics.metered(totalMicros / 1e6)
  }
  metered(0)
  tellAlerts(options, metrics, currency)
  const everyMs = config.finopsSaveSeconds * 1000
  const keeper = keepTotals({ ...options, path: statePath(config), everyMs, totalMicros: () => totalMicros })
  return {
    stage: createReserveStage({
      limits: counters.limits,
      budgetsOf: budgets.of,
      calendar,
      demandOf,
      clock,
      denied: (scope) => metrics.denied(scope),
      rateLimited: () => metrics.rateLimited(),
      metered,
      onFault: (error) => log.error({ error: reasonOf(error) }, 'what a call may spend could not be counted'),
    }),
    price: createPrice(demandOf),
    affords: createAffords(demandOf),
    limits: counters.limits,
    toolMeter: createToolMeter(),
    charging: createCharging({
      limits: counters.limits,
      table: () => budgets.of(snapshots.current),
      calendar,
      snapshots,
      clock,
      metered,
    }),
    routes: createBudgetRoutes({
      counters,
      table: () => budgets.of(snapshots.current),
      calendar,
      currency,
      now: () => clock.now(),
    }),
    async check() {
      // Prices first: budgets may be in their currency.
      await pricing.check()
      await budgets.check()
      await tellReached(options, budgets.of(snapshots.current), calendar)
    },
    async close() {
      pricing.stop()
      budgets.stop()
      await keeper.close()
    },
  }
}

/** All that was ever metered, in micro-units; totals of another ledger are forgotten, and the whole of this one is read. */
async function totalOf({ config, limits, alerts, spending, log }: BudgetsOptions): Promise<number> {
  if (!spending.mustReadAgain) return spending.finish()
  const path = statePath(config)
  log.warn({ path }, 'the saved totals are not of this ledger: the whole of it is read')
  const again = new Spending({ limits, alerts, saved: null })
  for await (const { seq, rec } of tailLedger(config.auditPath))
    again.see(Buffer.from(JSON.stringify(rec)), { seq, hash: '' })
  return again.finish()
}

/** What the last process reached and had no time to tell: of a budget that is used up nothing more is spent. */
async function tellReached(
  { limits, counters, alerts, clock }: BudgetsOptions,
  table: BudgetTable | null,
  calendar: WindowCalendar,
) {
  // Of budgets that are counted together the replica tells that spent it.
  if (counters.shared) return
  for (const budget of table?.budgets ?? []) {
    if (budget.window === 'session') continue
    const window = budget.windowAt(clock.now(), calendar)
    const { spent } = await limits.used(budget.prefix, window)
    alerts.spent(new BudgetItem({ budget, key: budget.prefix }, window, 0), spent)
  }
}

function tellAlerts({ ledgers, alerts, log }: BudgetsOptions, metrics: BudgetMetrics, currency: () => string): void {
  alerts.begin(async (alert) => {
    const { budget, percent } = alert
    const record = alertRecord(alert, currency())
    try {
      await ledgers.of('').append(record)
    } catch (error) {
      log.error({ budget: budget.id, percent, error: reasonOf(error) }, 'an alert could not be recorded in the ledger')
      throw error
    }
    metrics.alerted(budget.scope, percent)
    log.warn({ budget: budget.id, percent, window: alert.window }, 'a budget is spent to this percentage')
  })
}

/** 0 is no limit; a limit below a micro-unit is one of nothing; one beyond what can be counted can never be reached. */
function capOf(budget: number): Cap | null {
  return budget === 0 ? null : everySession(quantityToMicros(String(budget)) ?? Number.MAX_SAFE_INTEGER)
}

function statePath({ finopsStatePath, auditPath }: Pick<BudgetsConfig, 'finopsStatePath' | 'auditPath'>): string {
  return finopsStatePath || `${auditPath}.finops.json`
}
