import type { HoldItem, WindowCalendar } from '@plat/state'
import { type Identity, inTenant } from '../../../call/index.ts'

/** Callers that share one count. Label `scope` of metrics. */
export const SCOPES = ['session', 'agent', 'user', 'group', 'model', 'namespace', 'all'] as const
export type Scope = (typeof SCOPES)[number]

/** A limit of money or tokens in one window. */
export interface Cap {
  /** Name in denials, alerts and lists: `Agent/default/assistant/day`. */
  readonly id: string
  /** The resource that defines it; null: `sessionBudgetUSD`. */
  readonly source: string | null
  readonly scope: Scope
  readonly window: 'session' | 'day' | 'month'
  readonly unit: 'micros' | 'tokens'
  readonly amount: number
  /** Percentages. */
  readonly alerts: readonly number[]
  /** Whether it is a template's: each of its subjects has the cap. */
  readonly isTemplate?: boolean
}

type CallingSession = Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session'>

/** Amount at which an alert is sent. */
export interface Threshold {
  readonly percent: number
  readonly amount: number
}

/** A cap prepared for counting. */
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
  /** Prefix of its keys. Keys of session budgets continue with `/<namespace>/<agent>/<session>`. */
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

  appliedTo(caller: CallingSession): Applied {
    return { budget: this, key: this.keyOf(caller), whose: null }
  }

  /** Returns the key under which a caller is counted. */
  keyOf({ tenant, namespace, agent, session }: CallingSession): string {
    // `join` builds one flat string; `JSON.stringify` of a record needs one.
    return this.window === 'session'
      ? [this.prefix, inTenant(tenant, namespace), agent, session].join('/')
      : this.prefix
  }

  /** Returns the window that contains `now` (milliseconds since the epoch). */
  windowAt(now: number, calendar: WindowCalendar): string {
    if (this.window === 'session') return 'life'
    return this.window === 'day' ? calendar.day(now) : calendar.month(now)
  }
}

/** The amount that one call takes from a budget. */
export class BudgetItem implements HoldItem {
  readonly key: string
  readonly window: string
  readonly cap: number
  readonly amount: number
  readonly unit: Cap['unit']
  readonly budget: Budget
  readonly whose: string | null
  readonly template?: string

  constructor({ budget, key, whose }: Applied, window: string, amount: number) {
    this.key = key
    this.window = window
    this.cap = budget.amount
    this.amount = amount
    this.unit = budget.unit
    this.budget = budget
    this.whose = whose
    if (whose !== null) this.template = budget.prefix
  }
}

/** A budget that applies to a caller, with the caller's key. */
export interface Applied {
  readonly budget: Budget
  readonly key: string
  /** The subject of a template, in words: `user ada`; null: the budget is not a template's. */
  readonly whose: string | null
}

/** Returns whether a budget limits money. */
export function isMoney({ budget }: Applied): boolean {
  return budget.unit === 'micros'
}

/** `sessionBudgetUSD` as a budget. `micros`: the cap. */
export function everySession(micros: number): Cap {
  const alerts = [50, 80, 100]
  return { id: SESSION_ID, source: null, scope: 'session', window: 'session', unit: 'micros', amount: micros, alerts }
}

const SESSION_ID = 'sessionBudgetUSD'

/** Keys of templates: `usd/each/<id>/<subject>`, where an id has five parts (`BudgetPolicy/<ns>/<name>/<per>/<window>`). */
const TEMPLATE_KEY = /^[a-z]+\/each(?:\/[^/]+){5}(?=\/)/

/** Returns the prefix of a template that a key belongs to; null: it is not a template's. */
export function templateOfKey(key: string): string | null {
  return TEMPLATE_KEY.exec(key)?.[0] ?? null
}

/** Ids of rendered budgets begin with a capitalized kind, so none equals `session` or begins with `each`. */
function prefixOf({ id, source, window, unit, isTemplate }: Cap): string {
  const kind = unit === 'micros' ? 'usd' : 'tokens'
  if (isTemplate === true) return `${kind}/each/${id}`
  if (source === null) return `${kind}/session`
  return window === 'session' ? `${kind}/session/${id}` : `${kind}/${id}`
}

/** Rounded up: any smaller amount is below the percentage. */
function partOf(amount: number, percent: number): number {
  return Number((BigInt(amount) * BigInt(percent) + 99n) / 100n)
}
