import { type Clock, type PoolObservers, watchedPool } from '@plat/core'
import { tailLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { LocalLimits, type Overrun, type SharedLimits, type SharedLimitsOptions } from '@plat/state'
import type { Static } from 'typebox'
import { Alerts } from './alerts.ts'
import { type Counters, localCounters, sharedCounters } from './book/counters.ts'
import { Spending } from './book/spending.ts'
import { TemplateCounters } from './book/template-counters.ts'
import { readTotals } from './book/totals.ts'
import type { budgetsBlock } from './config.ts'

export type BudgetsConfig = Readonly<Static<typeof budgetsBlock.schema>> & {
  readonly auditPath: string
  readonly policyReloadSeconds: number
}

/** Limits before the ledger is open: what `see` is shown of it is counted in. */
export interface OpeningLimits {
  readonly limits: LocalLimits
  readonly counters: Counters
  readonly templates: TemplateCounters
  readonly spending: Spending
  readonly alerts: Alerts
}

/** Open the ledger with `spending.see` as its `onRecord`, then give all of it to `createBudgets`. */
export async function openLimits(using: {
  readonly config: BudgetsConfig
  /** Totals are rebuilt from the ledger, not read from where they are saved. */
  readonly rebuild?: boolean
  /** Where replicas count together; null: this one counts for itself. */
  readonly shared: { readonly rates: boolean; limits(options: SharedLimitsOptions): SharedLimits } | null
  readonly clock: Clock
  readonly log: Log
  readonly pools?: PoolObservers<'counters' | 'template_counters' | 'open_holds' | 'alerted_windows'>
}): Promise<OpeningLimits> {
  const { config, shared, clock, log, pools } = using
  const path = statePath(config)
  const saved = using.rebuild === true ? null : await readTotals(path)
  if (typeof saved === 'string')
    log.warn({ path, reason: saved }, 'the saved totals cannot be used: the ledger is read')
  const zone = config.budgetTimezone
  const windows = watchedPool({ name: 'alerted_windows', observer: pools?.of('alerted_windows') })
  const alerts = new Alerts({ now: () => clock.now(), zone, windows })
  const counting = {
    zone,
    // Where replicas count together, rates may be counted here: a call has a hold in both.
    holds: watchedPool({ name: 'open_holds', observer: pools?.of('open_holds') }),
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
  const pool = watchedPool({ name: 'template_counters', observer: pools?.of('template_counters') })
  return {
    limits,
    counters,
    templates: new TemplateCounters({ now: () => limits.now(), zone, pool }),
    alerts,
    spending: new Spending({ limits, alerts, saved: typeof saved === 'string' ? null : saved }),
  }
}

/** All that was ever metered, in micro-units; totals of another ledger are forgotten, and the whole of this one is read. */
export async function totalOf({
  config,
  limits,
  alerts,
  spending,
  ledgerPaths,
  log,
}: OpeningLimits & {
  readonly config: BudgetsConfig
  /** Files of all ledgers. */
  readonly ledgerPaths: () => readonly string[]
  readonly log: Log
}): Promise<number> {
  if (!spending.mustReadAgain) return spending.finish()
  const path = statePath(config)
  log.warn({ path }, 'the saved totals are not of this ledger: the whole of it is read')
  limits.forget()
  const again = new Spending({ limits, alerts, saved: null })
  for (const ledger of ledgerPaths())
    for await (const { seq, rec } of tailLedger(ledger)) again.see(Buffer.from(JSON.stringify(rec)), { seq, hash: '' })
  return again.finish()
}

export function statePath({
  finopsStatePath,
  auditPath,
}: Pick<BudgetsConfig, 'finopsStatePath' | 'auditPath'>): string {
  return finopsStatePath || `${auditPath}.finops.json`
}
