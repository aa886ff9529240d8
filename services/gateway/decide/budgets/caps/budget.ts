import type { HoldItem, WindowCalendar } from '@plat/state'
import type { Identity } from '../../../call/index.ts'

/** Whose calls count together: the label of metrics. */
export const SCOPES = ['session', 'agent', 'user', 'group', 'namespace', 'all'] as const
export type Scope = (typeof SCOPES)[number]

/** What calls may cost, or use in tokens, in one window. */
export interface Cap {
  /** What denials, alerts and lists name: `Agent/default/assistant/day`. */
  readonly id: string
  /** The resource that it comes from; null: `sessionBudgetUSD`. */
  readonly source: string | null
  readonly scope: Scope
  readonly window: 'session' | 'day' | 'month'
  readonly unit: 'micros' | 'tokens'
  readonly amount: number
  /** Percents. */
  readonly alerts: readonly number[]
}

/** An amount of a cap at which an alert is told. */
export interface Threshold {
  readonly percent: number
  readonly amount: number
}

/** A cap as calls are held to it. */
export class Budget implements Cap {
  readonly id: string
  readonly source: string | null
  readonly scope: Scope
  readonly window: Cap['window']
  readonly unit: Cap['unit']
  readonly amount: number
  readonly alerts: readonly number[]
  /** Ascending. */
  readonly thresholds: readonly Threshold[]
  /** What every key of it begins with. Of a session the rest is `/<namespace>/<agent>/<session>`. */
  readonly prefix: string

  constructor(cap: Cap) {
    this.id = cap.id
    this.source = cap.source
    this.scope = cap.scope
    this.window = cap.window
    this.unit = cap.unit
    this.amount = cap.amount
    this.alerts = cap.alerts
    this.thresholds = cap.alerts
      .toSorted((one, other) => one - other)
      .map((percent) => ({ percent, amount: partOf(cap.amount, percent) }))
    this.prefix = prefixOf(cap)
  }

  /** Under which key the calls of a caller count. */
  keyOf({ namespace, agent, session }: Pick<Identity, 'namespace' | 'agent' | 'session'>): string {
    // Joined, the text lies in one piece, as the record that says it asks for.
    return this.window === 'session' ? [this.prefix, namespace, agent, session].join('/') : this.prefix
  }

  /** The window that holds `now` (milliseconds since the epoch). */
  windowAt(now: number, calendar: WindowCalendar): string {
    if (this.window === 'session') return 'life'
    return this.window === 'day' ? calendar.day(now) : calendar.month(now)
  }
}

/** What one call takes of a budget. */
export class BudgetItem implements HoldItem {
  readonly key: string
  readonly window: string
  readonly cap: number
  readonly amount: number
  readonly unit: Cap['unit']
  readonly budget: Budget

  constructor({ budget, key }: Applied, window: string, amount: number) {
    this.key = key
    this.window = window
    this.cap = budget.amount
    this.amount = amount
    this.unit = budget.unit
    this.budget = budget
  }
}

/** A budget that a caller's calls count in, with the key of that caller. */
export interface Applied {
  readonly budget: Budget
  readonly key: string
}

/** `sessionBudgetUSD` as a budget; `micros`: its cap. */
export function everySession(micros: number): Cap {
  const alerts = [50, 80, 100]
  return { id: SESSION_ID, source: null, scope: 'session', window: 'session', unit: 'micros', amount: micros, alerts }
}

const SESSION_ID = 'sessionBudgetUSD'

/** Ids of rendered budgets begin with their kind, in capitals: none reads like `session`. */
function prefixOf({ id, source, window, unit }: Cap): string {
  const kind = unit === 'micros' ? 'usd' : 'tokens'
  if (source === null) return `${kind}/session`
  return window === 'session' ? `${kind}/session/${id}` : `${kind}/${id}`
}

/** Rounded up: what is below it is below the percentage as well. */
function partOf(amount: number, percent: number): number {
  return Number((BigInt(amount) * BigInt(percent) + 99n) / 100n)
}
