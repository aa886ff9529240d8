import { SharedPool } from '@plat/core'
import { type HoldItem, windowEnd } from '@plat/state'
import { type Budget, BudgetItem, type Threshold, templateOfKey } from './caps/budget.ts'

/** Alert name in records and notifications. */
export const BUDGET_THRESHOLD = 'budget.threshold'

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
  /** Whose share it is in. */
  readonly caller: string
}

/** Resolves when the alert is durable. After a failure it is sent again with the next spending. */
type SendAlert = (alert: BudgetAlert) => Promise<unknown>

export interface AlertsOptions {
  readonly now: () => number
  /** IANA zone of day and month windows. */
  readonly zone: string
  /** Remembered windows. Beyond a limit one is forgotten per new window, and its alerts may be sent again. Default: the row of the pool. */
  readonly windows?: SharedPool
}

/** Sends one alert per budget, window and percentage, also across restarts. */
export class Alerts {
  readonly #sent = new Map<string, Entry>()
  /** Names of the windows of each caller, oldest first. */
  readonly #names = new Map<string, Set<string>>()
  readonly #windows: SharedPool
  readonly #options: AlertsOptions
  #sweeper: Iterator<[string, Entry]>
  #send: SendAlert = async () => {}

  constructor(options: AlertsOptions) {
    this.#options = options
    this.#windows = options.windows ?? new SharedPool({ name: 'alerted_windows' })
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
    const caller = callerOf(key)
    this.#makeRoom(caller)
    const fresh: Entry = { key, window, percents: [], endsAt: windowEnd(window, this.#options.zone), caller }
    this.#sent.set(name, fresh)
    this.#names.getOrInsertComputed(caller, () => new Set()).add(name)
    return fresh
  }

  /** Removes ended windows, and acquires the place of one: at its share a caller replaces its oldest. */
  #makeRoom(caller: string): void {
    this.#sweep(false)
    const bound = this.#windows.acquire(caller)
    if (bound === null) return
    const [oldest] = this.#names.get(caller) ?? []
    if (bound === 'share' && oldest !== undefined) this.#forget(oldest, caller)
    else this.#sweep(true)
    this.#windows.add(caller)
  }

  /** `isFull`: removes the next windows, whether they have ended or not. */
  #sweep(isFull: boolean): void {
    const now = this.#options.now()
    for (let swept = 0; swept < SWEPT_PER_WINDOW; swept++) {
      const next = this.#sweeper.next()
      if (next.done === true) {
        this.#sweeper = this.#sent.entries()
        continue
      }
      const [name, { endsAt, caller }] = next.value
      if (isFull || (endsAt !== null && endsAt <= now)) this.#forget(name, caller)
    }
  }

  #forget(name: string, caller: string): void {
    if (!this.#sent.delete(name)) return
    this.#windows.release(caller)
    const names = this.#names.get(caller)
    names?.delete(name)
    if (names?.size === 0) this.#names.delete(caller)
  }
}

/** The template for keys of its subjects, the agent and its budget for keys of sessions (`…/<namespace>/<agent>/<session>`), else the budget. */
function callerOf(key: string): string {
  const template = templateOfKey(key)
  if (template !== null) return template
  return SESSION_KEY.test(key) ? key.slice(0, key.lastIndexOf('/')) : key
}

const SESSION_KEY = /^[a-z]+\/session\//
