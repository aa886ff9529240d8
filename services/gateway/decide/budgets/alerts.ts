import { type HoldItem, windowEnd } from '@plat/state'
import { type Budget, BudgetItem, type Threshold } from './caps/budget.ts'

/** The word in records, and of whoever is notified. */
export const BUDGET_THRESHOLD = 'budget.threshold'

/** Windows of which it is remembered what was told; beyond, one is forgotten for each further one, and may be told of once more. */
export const MAX_WINDOWS = 100_000
/** With each further window so many of those that are remembered are looked at, so that none is searched for. */
const LOOKED_AT = 2

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

/** When the window is over, in milliseconds since the epoch; null: never. */
interface Entry extends SentPercents {
  readonly percents: number[]
  readonly endsAt: number | null
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
  readonly #told = new Map<string, Entry>()
  readonly #options: AlertsOptions
  #sweeper: Iterator<[string, Entry]>
  #tell: SendAlert = async () => {}

  constructor(options: AlertsOptions) {
    this.#options = options
    this.#sweeper = this.#told.entries()
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
    const now = this.#options.now()
    const told: SentPercents[] = []
    for (const { key, window, percents, endsAt } of this.#told.values())
      if (endsAt === null || endsAt > now) told.push({ key, window, percents })
    return told
  }

  /** Windows that are remembered. */
  get size(): number {
    return this.#told.size
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
    this.#makeRoom()
    const fresh: Entry = { key, window, percents: [], endsAt: windowEnd(window, this.#options.zone) }
    this.#told.set(name, fresh)
    return fresh
  }

  #makeRoom(): void {
    const now = this.#options.now()
    for (let looked = 0; looked < LOOKED_AT; looked++) {
      const next = this.#sweeper.next()
      if (next.done === true) {
        this.#sweeper = this.#told.entries()
        continue
      }
      const [name, { endsAt }] = next.value
      if (this.#told.size >= MAX_WINDOWS || (endsAt !== null && endsAt <= now)) this.#told.delete(name)
    }
  }
}
