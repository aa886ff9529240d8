import { rfc3339 } from '@plat/core'
import { type WindowCalendar, windowEnd } from '@plat/state'
import { AdminError, type AdminRoutes, page } from '../../admin/index.ts'
import { tenantInKey } from '../../call/index.ts'
import type { Counters } from './book/counters.ts'
import type { Budget } from './caps/budget.ts'
import type { BudgetTable } from './caps/table.ts'
import type { Template } from './caps/template.ts'
import type { BudgetAmount, BudgetView } from './view.ts'

export interface BudgetRoutesOptions {
  readonly counters: Counters
  /** Returns null until `budgetsFile` has been read. */
  readonly table: () => BudgetTable | null
  readonly calendar: WindowCalendar
  /** ISO 4217. */
  readonly currency: () => string
  readonly now: () => number
}

/** `GET /v1/budgets`: spent and remaining amounts of every budget. */
export function createBudgetRoutes(options: BudgetRoutesOptions): AdminRoutes {
  return {
    mount(context) {
      context.on('GET /v1/budgets', async ({ query }, _reply, caller) => {
        const views = await viewsOf(options)
        const seen = views.filter((view) => caller.sees(namespaceOf(view), tenantOf(view)))
        return page(seen, query)
      })
    },
  }
}

/** Sorted by descending id, as pagination requires. */
async function viewsOf(options: BudgetRoutesOptions): Promise<readonly BudgetView[]> {
  const table = options.table()
  if (table === null) throw new AdminError('state_unavailable', 'budgetsFile is not loaded yet: see the log')
  const views = table.budgets.map(async (budget) =>
    budget.window === 'session' ? await sessionsOf(budget, options) : [await windowNow(budget, options)],
  )
  const ofTemplates = table.templates.map((template) => subjectsNow(template, options))
  return (await Promise.all([...views, ...ofTemplates])).flat().toSorted((one, other) => (one.id < other.id ? 1 : -1))
}

/** Namespace of the resource that defines the budget, else of the session. */
function namespaceOf({ source, period }: BudgetView): string {
  const [, namespace = ''] = source === null ? ['', ...period.split('/')] : source.split('/')
  return namespace
}

/** Tenant of the session of a per-session budget, where its namespace can be of another one by now. */
function tenantOf({ id, budget, window }: BudgetView): string | undefined {
  return window === 'session' ? tenantInKey(id.slice(budget.length + 1)).tenant : undefined
}

async function windowNow(budget: Budget, options: BudgetRoutesOptions): Promise<BudgetView> {
  const window = budget.windowAt(options.now(), options.calendar)
  const used = await options.counters.limits.used(budget.prefix, window)
  const end = windowEnd(window, options.calendar.zone)
  return viewOf(
    budget,
    { id: budget.id, period: window, resetsAt: end === null ? null : rfc3339(end), ...used },
    options,
  )
}

/** Views of a per-session budget, one for each session that has used it. */
async function sessionsOf(budget: Budget, options: BudgetRoutesOptions): Promise<BudgetView[]> {
  const views: BudgetView[] = []
  const begin = `${budget.prefix}/`
  for (const { key, window, spent, held, usedAt } of await options.counters.counted(begin)) {
    if (window !== 'life' || spent + held === 0) continue
    const session = key.slice(begin.length)
    if (!SESSION.test(session)) continue
    const standing = {
      id: `${budget.id}:${session}`,
      period: tenantInKey(session).rest,
      resetsAt: null,
      spent,
      held,
      usedAt,
    }
    views.push(viewOf(budget, standing, options))
  }
  return views
}

/** Views of a template, one for each subject that has used it in the current window. */
async function subjectsNow(template: Template, options: BudgetRoutesOptions): Promise<BudgetView[]> {
  const { budget } = template
  const period = budget.windowAt(options.now(), options.calendar)
  const end = windowEnd(period, options.calendar.zone)
  const resetsAt = end === null ? null : rfc3339(end)
  const views: BudgetView[] = []
  const begin = `${budget.prefix}/`
  for (const { key, window, spent, held, usedAt } of await options.counters.counted(begin)) {
    if (window !== period || spent + held === 0) continue
    const subject = key.slice(begin.length)
    const standing = {
      id: `${budget.id}:${subject}`,
      period,
      subject: tenantInKey(subject).rest,
      resetsAt,
      spent,
      held,
      usedAt,
    }
    views.push(viewOf(template.budgetOf(subject), standing, options))
  }
  return views
}

/** `<namespace>/<agent>/<session>`. Keys of other budgets may share the prefix. */
const SESSION = /^[^/]+\/[^/]+\/[^/]+$/

interface Standing {
  readonly id: string
  readonly period: string
  readonly subject?: string
  /** Milliseconds since the epoch. */
  readonly usedAt?: number
  readonly resetsAt: string | null
  readonly spent: number
  readonly held: number
}

function viewOf(
  budget: Budget,
  { id, period, subject, resetsAt, spent, held, usedAt }: Standing,
  options: BudgetRoutesOptions,
): BudgetView {
  const currency = options.currency()
  const amount = (value: number): BudgetAmount =>
    budget.unit === 'micros' ? { micros: value, currency } : { tokens: value }
  return {
    id,
    budget: budget.id,
    source: budget.source,
    scope: budget.scope,
    window: budget.window,
    period,
    subject: subject ?? null,
    usedAt: usedAt === undefined ? null : rfc3339(usedAt),
    cap: amount(budget.amount),
    spent: amount(spent),
    held: amount(held),
    left: amount(Math.max(0, budget.amount - spent - held)),
    resetsAt,
    alerts: budget.alerts,
  }
}
