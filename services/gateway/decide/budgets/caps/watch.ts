import { followFile, missingFile } from '@plat/config'
import { type Clock, quantityToMicros } from '@plat/core'
import type { Log } from '@plat/process'
import type { Slot, Snapshot, Snapshots } from '../../../call/index.ts'
import { DEFAULT_CURRENCY } from '../currency.ts'
import { pricingSlot } from '../pricing/pricing.ts'
import { type Cap, everySession } from './budget.ts'
import { type DecodedBudgets, decodeBudgets } from './decode.ts'
import { BudgetTable } from './table.ts'

/** Slot of the budgets in the snapshot. Null until `budgetsFile` has been read: no call with a cost passes. */
const budgetsSlot: Slot<BudgetTable | null> = { name: 'budgets', initial: null }

export interface BudgetsWatchOptions {
  readonly config: {
    /** Empty: `sessionBudgetUSD` is the only budget. */
    readonly budgetsFile: string
    /** Empty: the currency of the prices. */
    readonly budgetCurrency: string
    readonly policyReloadSeconds: number
    readonly sessionBudgetUSD: number
  }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

export interface BudgetsWatch {
  /** Returns the budgets of a snapshot, or null until `budgetsFile` has been read. */
  of(snapshot: Snapshot): BudgetTable | null
  check(): Promise<void>
  stop(): void
}

/** Budgets of `budgetsFile`, read again every `policyReloadSeconds`; a bad file leaves the good one in force. */
export function watchBudgets({ config, snapshots, clock, log }: BudgetsWatchOptions): BudgetsWatch {
  const path = config.budgetsFile
  const session = capOf(config.sessionBudgetUSD)
  const ofSessions = session === null ? [] : [{ cap: session, match: {} }]
  if (path === '') {
    const table = new BudgetTable(null, ofSessions)
    return { of: () => table, check: async () => {}, stop() {} }
  }
  const refuse = (problems: readonly string[]) => {
    const known = snapshots.current.get(budgetsSlot) !== null
    const meanwhile = known ? 'the previous budgets remain in force' : 'calls with a cost are refused'
    log.error({ path, problems }, `budgetsFile is refused: ${meanwhile}`)
  }
  let read: DecodedBudgets | null = null
  /** The prices may have changed the currency, so the file is validated again. */
  const publish = () => {
    if (read === null) return
    const { currency, entries } = read
    const counted = countedIn(config, snapshots.current)
    if (currency !== counted) return refuse([`currency: ${currency}, but the gateway counts in ${counted}; ${FIX}`])
    snapshots.publish(budgetsSlot, new BudgetTable(currency, [...ofSessions, ...entries]))
    log.info({ path, budgets: entries.length, currency }, 'budgets loaded')
  }
  const watch = followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode(bytes) {
      read = null
      return bytes === null ? missingFile : decodeBudgets(bytes)
    },
    publish(decoded) {
      read = decoded
      publish()
    },
    refuse,
  })
  let prices = snapshots.current.get(pricingSlot)
  const unlisten = snapshots.onChange((snapshot) => {
    if (snapshot.get(pricingSlot) === prices) return
    prices = snapshot.get(pricingSlot)
    publish()
  })
  return {
    of: (snapshot) => snapshot.get(budgetsSlot),
    check: () => watch.check(),
    stop() {
      unlisten()
      watch.stop()
    },
  }
}

const FIX = 'nothing is converted: set budgetCurrency, or write the budgets in the currency of the prices'

/** docs/spec/gateway.md, `budgetCurrency`. */
function countedIn({ budgetCurrency }: { readonly budgetCurrency: string }, snapshot: Snapshot): string {
  return budgetCurrency || snapshot.get(pricingSlot).currency || DEFAULT_CURRENCY
}

/** 0 is no limit; a limit below a micro-unit is one of nothing; one beyond what can be counted can never be reached. */
function capOf(budget: number): Cap | null {
  return budget === 0 ? null : everySession(quantityToMicros(String(budget)) ?? Number.MAX_SAFE_INTEGER)
}
