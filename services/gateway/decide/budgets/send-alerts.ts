import { type Clock, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { WindowCalendar } from '@plat/state'
import { type Tenancy, tenantInKey } from '../../call/index.ts'
import type { BudgetAlert } from './alerts.ts'
import { BudgetItem } from './caps/budget.ts'
import type { BudgetTable } from './caps/table.ts'
import type { BudgetMetrics } from './metrics.ts'
import type { OpeningLimits } from './opening.ts'
import { alertRecord } from './record.ts'

interface AlertParts extends Pick<OpeningLimits, 'limits' | 'counters' | 'alerts'> {
  readonly ledgers: Ledgers
  readonly tenancy: Tenancy
  readonly clock: Clock
  readonly log: Log
}

/** Records, counts and logs each alert. */
export function sendAlerts(
  { ledgers, tenancy, alerts, log }: AlertParts,
  metrics: BudgetMetrics,
  currency: () => string,
): void {
  alerts.begin(async (alert) => {
    const { budget, percent } = alert
    const record = alertRecord(alert, currency())
    try {
      await ledgers.of(tenantOf(alert, tenancy)).append(record)
    } catch (error) {
      log.error({ budget: budget.id, percent, error: reasonOf(error) }, 'an alert could not be recorded in the ledger')
      throw error
    }
    metrics.alerted(budget.scope, percent)
    log.warn({ budget: budget.id, percent, window: alert.window }, 'a budget has reached an alert threshold')
  })
}

/** Tenant of the resource that defines the budget, else of the session. */
function tenantOf({ budget: { source, prefix }, key }: BudgetAlert, tenancy: Tenancy): string {
  if (source !== null) return tenancy.of(source.split('/')[1] ?? '')
  return tenantInKey(key.slice(prefix.length + 1)).tenant
}

/** Sends alerts that the last process reached but did not send: nothing more is spent of an exhausted budget, so no call would. */
export async function alertReached(
  { limits, counters, alerts, clock }: AlertParts,
  table: BudgetTable | null,
  calendar: WindowCalendar,
) {
  // The replica that spends from a shared budget sends its alerts.
  if (counters.shared) return
  for (const budget of table?.budgets ?? []) {
    if (budget.window === 'session') continue
    const window = budget.windowAt(clock.now(), calendar)
    const { spent } = await limits.used(budget.prefix, window)
    alerts.spent(new BudgetItem({ budget, key: budget.prefix, whose: null }, window, 0), spent)
  }
  for (const template of table?.templates ?? []) {
    const begin = `${template.budget.prefix}/`
    const now = template.budget.windowAt(clock.now(), calendar)
    for (const { key, window, spent } of await counters.counted(begin)) {
      const budget = template.budgetOf(key.slice(begin.length))
      if (window === now) alerts.spent(new BudgetItem({ budget, key, whose: null }, window, 0), spent)
    }
  }
}
