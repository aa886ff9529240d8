import { type BudgetEntry, type BudgetsFile, budgetsFileSchema, decodeRendered } from '@plat/resources/rendered'
import type { Scope } from './budget.ts'
import type { Match, Selecting } from './table.ts'

/** The content of a budgetsFile. */
export interface DecodedBudgets {
  /** ISO 4217. */
  readonly currency: string
  readonly entries: readonly Selecting[]
}

/** Decodes a budgetsFile strictly. Returns every problem with its path if there is one. */
export function decodeBudgets(bytes: Uint8Array): DecodedBudgets | { readonly problems: readonly string[] } {
  const decoded = decodeRendered(budgetsFileSchema, bytes, () => [])
  if (!decoded.ok) return { problems: decoded.problems }
  const { currency, budgets } = decoded.file
  const problems = problemsOf(decoded.file)
  if (problems.length > 0) return { problems }
  return { currency, entries: budgets.map(entryOf) }
}

/** Keys of counters depend on its number of parts. */
const TEMPLATE_ID = /^[^/]+(?:\/[^/]+){4}$/

function problemsOf({ budgets }: BudgetsFile): string[] {
  const problems: string[] = []
  const ids = new Set<string>()
  for (const [at, { id, source, capMicros, tokens, window, per, names, except }] of budgets.entries()) {
    const path = `budgets[${at}]`
    if (ids.has(id)) problems.push(`${path}.id: duplicate id ${id}`)
    ids.add(id)
    if (!id.startsWith(`${source}/`)) problems.push(`${path}.id: must begin with its source, ${source}/`)
    if ((capMicros === undefined) === (tokens === undefined))
      problems.push(`${path}: needs capMicros or tokens, not both`)
    if (per === undefined && (names ?? except) !== undefined) problems.push(`${path}: names and except need per`)
    if (per !== undefined && (window === 'session' || !TEMPLATE_ID.test(id)))
      problems.push(`${path}: per needs a day or a month, and an id <source>/<per>/<window>`)
  }
  return problems
}

function entryOf({ id, source, match, window, capMicros, tokens, alerts, per, names, except }: BudgetEntry): Selecting {
  const unit = capMicros === undefined ? 'tokens' : 'micros'
  const amount = capMicros ?? tokens ?? 0
  if (per === undefined)
    return { cap: { id, source, scope: scopeOf(match, window), window, unit, amount, alerts }, match }
  const cap = { id, source, scope: per, window, unit, amount, alerts, isTemplate: true } as const
  return { cap, match, each: { per, names: names ?? null, except: except ?? [] } }
}

/** The most specific selector of a budget. */
function scopeOf({ agents, users, groups, namespaces }: Match, window: BudgetEntry['window']): Scope {
  if (window === 'session') return 'session'
  if (agents !== undefined) return 'agent'
  if (users !== undefined) return 'user'
  if (groups !== undefined) return 'group'
  return namespaces === undefined ? 'all' : 'namespace'
}
