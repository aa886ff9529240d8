import { type HoldItem, windowEnd } from '@plat/state'
import { type Budget, BudgetItem, type Threshold } from './caps/budget.ts'

/** The word in records, and of whoever is notified. */
export const BUDGET_THRESHOLD = 'budget.threshold'

/** Windows of which it is remembered what was told; the oldest are forgotten, and may be told of once more. */
const MAX_WINDOWS = 100_000
/** Windows that are over are looked for each time so many more are remembered. */
const SWEEP_EVERY = 1000

/** So much of a budget is spent. */
export interface BudgetAlert {
  readonly budget: Budget
  /** Of the item that was spent. */
  readonly key: string
  readonly window: string
  readonly percent: number
  /** Micro-units of the currency, or tokens. */
  readonly spent: number
}

/** Percents of one key in one window that were told. */
export interface SentPercents {
  readonly key: string
  readonly window: string
  readonly percents: readonly number[]
}

/** Resolves when the alert is durable. One that cannot be kept is told again when more is spent. */
type SendAlert = (alert: BudgetAlert) => Promise<unknown>

export interface AlertsOptions {
  readonly now: () => number
  /** IANA: of windows that are days and months. */
  readonly zone: string
}

/** Tells once for each budget, window and percent that so much is spent; what an earlier process told is not told again. */
export class Alerts {
  readonly #told = new Map<string, SentPercents & { readonly percents: number[] }>()
  readonly #options: AlertsOptions
  #sweepAt = SWEEP_EVERY
  #tell: SendAlert = async () => {}

  constructor(options: AlertsOptions) {
    this.#options = options
  }

  /** To whom alerts are told from now on. */
  begin(tell: SendAlert): void {
    this.#tell = tell
  }

  /** For `onSpent` of limits. What was reached `before` already, in other replicas, is told by them. */
  readonly spent = (item: HoldItem, spent: number, before = 0): void => {
    if (!(item instanceof BudgetItem) || spent === 0) return
    for (const threshold of item.budget.thresholds) {
      if (spent < threshold.amount) return
      if (before >= threshold.amount) this.restore(item.key, item.window, threshold.percent)
      else this.#reached(item, threshold, spent)
    }
  }

  /** An alert that was told before. */
  restore(key: string, window: string, percent: number): void {
    const told = this.#of(key, window)
    if (!told.percents.includes(percent)) told.percents.push(percent)
  }

  /** Everything that was told of windows that are not over. */
  told(): readonly SentPercents[] {
    this.#sweep()
    return [...this.#told.values()]
  }

  #reached({ budget, key, window }: BudgetItem, { percent }: Threshold, spent: number): void {
    const told = this.#of(key, window)
    if (told.percents.includes(percent)) return
    told.percents.push(percent)
    this.#tell({ budget, key, window, percent, spent }).catch(() =>
      told.percents.splice(told.percents.indexOf(percent), 1),
    )
  }

  #of(key: string, window: string) {
    const name = `${key}\n${window}`
    const known = this.#told.get(name)
    if (known !== undefined) return known
    if (this.#told.size >= this.#sweepAt) this.#sweep()
    const fresh: SentPercents & { readonly percents: number[] } = { key, window, percents: [] }
    this.#told.set(name, fresh)
    return fresh
  }

  #sweep(): void {
    const now = this.#options.now()
    for (const [name, { window }] of this.#told) {
      const end = windowEnd(window, this.#options.zone)
      const tooMany = this.#told.size >= MAX_WINDOWS
      if (tooMany || (end !== null && end <= now)) this.#told.delete(name)
    }
    this.#sweepAt = this.#told.size + SWEEP_EVERY
  }
}
