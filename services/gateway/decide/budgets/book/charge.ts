import { type Clock, isPromise } from '@plat/core'
import { type Hold, isShort, type Limits, type WindowCalendar } from '@plat/state'
import { AdminError } from '../../../admin/index.ts'
import { agentOf, type Identity, type Snapshots } from '../../../call/index.ts'
import { type Applied, BudgetItem } from '../caps/budget.ts'
import type { BudgetTable } from '../caps/table.ts'
import { pricingSlot } from '../pricing/pricing.ts'
import { type SandboxUse, sandboxCostOf } from '../pricing/sandbox.ts'

/** Lifetime of a hold without an owner, in milliseconds. */
const HOLD_LIFE_MS = 24 * 3_600_000

/** The identity whose budgets are charged. */
export type Payer = Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session' | 'user' | 'issuer' | 'groups'>

/** A cost in millionths of the currency. */
export interface Cost {
  readonly micros: number
  readonly currency: string
  readonly priceId: string
}

/** Charges past usage. It counts beyond every cap, because it can no longer be refused. */
export interface Charging {
  /** Cost at the current prices. */
  costOf(use: SandboxUse): Cost
  /** Holds the cost in every budget of the payer. Returns null if there is none. Throws `state_unavailable`. */
  take(id: string, payer: Payer, cost: Pick<Cost, 'micros' | 'currency'>): Hold | null | Promise<Hold | null>
  /** Adds to the metered total, in micro-units. */
  metered(micros: number): void
}

export interface ChargingParts {
  readonly limits: Limits
  /** Returns null until `budgetsFile` has been read. */
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
      let hold: ReturnType<Limits['take']>
      try {
        hold = limits.take(id, items, clock.now() + HOLD_LIFE_MS, holderOf(payer))
      } catch {
        return away()
      }
      return isPromise(hold) ? hold.then(held, away) : held(hold)
    },
    metered,
  }
}

/** Agent and session, for the shares of pools. */
function holderOf(payer: Payer): readonly string[] {
  const agent = agentOf(payer)
  return [agent, `${agent}/${payer.session}`]
}

/** Usage that has already happened; no cap rejects it. */
class UsedItem extends BudgetItem {
  override readonly cap = Number.MAX_SAFE_INTEGER
}

function budgetsOf(table: BudgetTable | null, payer: Payer, currency: string): readonly Applied[] {
  if (table === null) throw new AdminError('state_unavailable', 'budgets are not loaded yet: see the log')
  const money = table.matching(payer).filter(({ budget }) => budget.unit === 'micros')
  if (money.length > 0 && table.currency !== null && table.currency !== currency)
    throw new AdminError('state_unavailable', `the prices are in ${currency}, but the budgets in ${table.currency}`)
  return money
}

function held(hold: Awaited<ReturnType<Limits['take']>>): Hold {
  if (isShort(hold)) throw new AdminError('state_unavailable', `${hold.key}: the amount is too large to count`)
  return hold
}

function away(): never {
  throw new AdminError('state_unavailable', 'spending cannot be counted now')
}
