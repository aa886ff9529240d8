import type { Clock } from '@plat/core'
import type { Hold, Limits, WindowCalendar } from '@plat/state'
import { isShort } from '@plat/state'
import { AdminError } from '../../../admin/index.ts'
import { agentOf, type Identity, type Snapshots } from '../../../call/index.ts'
import { type Applied, BudgetItem } from '../caps/budget.ts'
import type { BudgetTable } from '../caps/table.ts'
import { pricingSlot } from '../pricing/pricing.ts'
import { type SandboxUse, sandboxCostOf } from '../pricing/sandbox.ts'

/** How long a hold without an owner lasts, in milliseconds. */
const HOLD_LIFE_MS = 24 * 3_600_000

/** Whose budgets are charged. */
export type Payer = Pick<Identity, 'namespace' | 'agent' | 'session' | 'user' | 'groups'>

/** What something costs, in millionths of the currency. */
export interface Cost {
  readonly micros: number
  readonly currency: string
  readonly priceId: string
}

/** Charges what was used already: nobody can refuse it any more, so it counts beyond every cap, and whoever spends next finds less. */
export interface Charging {
  /** By the prices in force. */
  costOf(use: SandboxUse): Cost
  /** Takes the money from every budget that the payer's calls count in. Null: there is none. Throws `state_unavailable`. */
  take(id: string, payer: Payer, cost: Pick<Cost, 'micros' | 'currency'>): Hold | null | Promise<Hold | null>
  /** So many micro-units were spent. */
  metered(micros: number): void
}

export interface ChargingParts {
  readonly limits: Limits
  /** Null: `budgetsFile` could not be read yet. */
  readonly table: () => BudgetTable | null
  readonly calendar: WindowCalendar
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly metered: (micros: number) => void
}

export function createCharging({ limits, table, calendar, snapshots, clock, metered }: ChargingParts): Charging {
  const itemsOf = (payer: Payer, { micros, currency }: Pick<Cost, 'micros' | 'currency'>) => {
    const now = clock.now()
    const money = budgetsOf(table(), payer, currency)
    return money.map((applied) => new UsedItem(applied, applied.budget.windowAt(now, calendar), micros))
  }
  return {
    costOf(use) {
      const { sandbox, currency, id } = snapshots.current.get(pricingSlot)
      return { micros: sandbox === null ? 0 : sandboxCostOf(sandbox, use), currency, priceId: id }
    },
    take(id, payer, cost) {
      const items = cost.micros === 0 ? [] : itemsOf(payer, cost)
      if (items.length === 0) return null
      const taken = limits.take(id, items, clock.now() + HOLD_LIFE_MS, agentOf({ tenant: '', ...payer }))
      return taken instanceof Promise ? taken.then(held, away) : held(taken)
    },
    metered,
  }
}

/** An amount that is spent already: no cap is too short for it. */
class UsedItem extends BudgetItem {
  override readonly cap = Number.MAX_SAFE_INTEGER
}

function budgetsOf(table: BudgetTable | null, payer: Payer, currency: string): readonly Applied[] {
  if (table === null) throw new AdminError('state_unavailable', 'the budgets could not be read yet: see the log')
  const money = table.matching(payer).filter(({ budget }) => budget.unit === 'micros')
  if (money.length > 0 && table.currency !== null && table.currency !== currency)
    throw new AdminError('state_unavailable', `the prices are in ${currency}, and the budgets in ${table.currency}`)
  return money
}

function held(taken: Awaited<ReturnType<Limits['take']>>): Hold {
  if (isShort(taken)) throw new AdminError('state_unavailable', `${taken.key}: more than can be counted was spent`)
  return taken
}

function away(): never {
  throw new AdminError('state_unavailable', 'what was spent cannot be counted now')
}
