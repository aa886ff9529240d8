import { type HoldItem, windowEnd } from '@plat/state'
import { type Budget, BudgetItem, type Threshold } from './caps/budget.ts'

/** Alert name in records and notifications. */
export const BUDGET_THRESHOLD = 'budget.threshold'

/** Bound of remembered windows. When exceeded, one is evicted per new window and its alerts may be sent again. */
export const MAX_WINDOWS = 100_000
/** Entries swept per new window, so that no scan is needed. */
const SWEPT_PER_WINDOW = 2

/** A threshold of a budget was reached. */
export interface BudgetAlert {
  readonly budget: Budget
  /** Key of the item that was spent. */
  readonly key: string
  readonly window: string
  readonly percent: number
  /** Micro-units of the currency, or tokens. */
  readonly spent: number
}

/** Percentages of one key and window for which an alert was sent. */
export interface SentPercents {
  readonly key: string
  readonly window: string
  readonly percents: readonly number[]
}

/** End of the window, in milliseconds since the epoch; null: never. */
interface Entry extends SentPercents {
  readonly percents: number[]
  readonly endsAt: number | null
}

/** Resolves when the alert is durable. After a failure it is sent again with the next spending. */
type SendAlert = (alert: BudgetAlert) => Promise<unknown>

export interface AlertsOptions {
  readonly now: () => number
  /** IANA zone of day and month windows. */
  readonly zone: string
}

/** Sends one alert per budget, window and percentage, also across restarts. */
export class Alerts {
  readonly #sent = new Map<string, Entry>()
  readonly #options: AlertsOptions
  #sweeper: Iterator<[string, Entry]>
  #send: SendAlert = async () => {}

  constructor(options: AlertsOptions) {
    this.#options = options
    this.#sweeper = this.#sent.entries()
  }

  /** Sends all further alerts with `send`. */
  begin(send: SendAlert): void {
    this.#send = send
  }

  /** For `onSpent` of limits. Percentages reached by `before` are reported by the replicas that spent it. */
  readonly spent = (item: HoldItem, spent: number, before = 0): void => {
    if (!(item instanceof BudgetItem) || spent === 0) return
    for (const threshold of item.budget.thresholds) {
      if (spent < threshold.amount) return
      if (before >= threshold.amount) this.restore(item.key, item.window, threshold.percent)
      else this.#reached(item, threshold, spent)
    }
  }

  /** Marks an alert as sent by an earlier process. */
  restore(key: string, window: string, percent: number): void {
    const sent = this.#of(key, window)
    if (!sent.percents.includes(percent)) sent.percents.push(percent)
  }

  /** Alerts sent for windows that have not ended. */
  sentPercents(): readonly SentPercents[] {
    const now = this.#options.now()
    const result: SentPercents[] = []
    for (const { key, window, percents, endsAt } of this.#sent.values())
      if (endsAt === null || endsAt > now) result.push({ key, window, percents })
    return result
  }

  /** Number of remembered windows. */
  get size(): number {
    return this.#sent.size
  }

  #reached({ budget, key, window }: BudgetItem, { percent }: Threshold, spent: number): void {
    const sent = this.#of(key, window)
    if (sent.percents.includes(percent)) return
    sent.percents.push(percent)
    this.#send({ budget, key, window, percent, spent }).catch(() =>
      sent.percents.splice(sent.percents.indexOf(percent), 1),
    )
  }

  #of(key: string, window: string) {
    const name = `${key}\n${window}`
    const known = this.#sent.get(name)
    if (known !== undefined) return known
    this.#makeRoom()
    const fresh: Entry = { key, window, percents: [], endsAt: windowEnd(window, this.#options.zone) }
    this.#sent.set(name, fresh)
    return fresh
  }

  #makeRoom(): void {
    const now = this.#options.now()
    for (let swept = 0; swept < SWEPT_PER_WINDOW; swept++) {
      const next = this.#sweeper.next()
      if (next.done === true) {
        this.#sweeper = this.#sent.entries()
        continue
      }
      const [name, { endsAt }] = next.value
      if (this.#sent.size >= MAX_WINDOWS || (endsAt !== null && endsAt <= now)) this.#sent.delete(name)
    }
  }
}
