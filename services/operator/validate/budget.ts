import type { Manifest } from '@plat/resources'
import { emptyMembers, type Problem } from './problem.ts'

type Caps = Readonly<Record<string, unknown>> & { readonly currency?: string }

/** Problems of the amounts of a budget of any kind: `currency`, and every member that limits money. */
export function budgetProblems(budget: Caps, currency: string): Problem[] {
  const problems: Problem[] = []
  if (budget.currency !== undefined && budget.currency !== currency) {
    const why = `${budget.currency}, but the gateway counts in ${currency}: nothing is converted; write amounts in ${currency} or set budgetCurrency`
    problems.push({ path: 'currency', why })
  }
  for (const [path, value] of Object.entries(budget)) {
    if (path.startsWith('per') && String(value).startsWith('-')) problems.push({ path, why: 'must not be negative' })
  }
  return problems
}

/** Problems of the selector of a BudgetPolicy. */
export function selectorProblems({ selector = {} }: Manifest<'BudgetPolicy'>['spec']): Problem[] {
  const { agents, users, groups } = selector
  return [
    ...emptyMembers('selector.agents', agents),
    ...emptyMembers('selector.users', users),
    ...emptyMembers('selector.groups', groups),
  ]
}
