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

type Template = NonNullable<Manifest<'BudgetPolicy'>['spec']['each']>[number]

export function templateProblems({ each = [] }: Manifest<'BudgetPolicy'>['spec'], currency: string): Problem[] {
  return each.flatMap((template, index) =>
    [
      ...budgetProblems(template, currency),
      ...emptyMembers('names', template.names),
      ...exceptionProblems(template),
    ].map(({ path, why }) => ({ path: `each[${index}].${path}`, why })),
  )
}

/** An exception from a cap that the template lacks would leave all others without one. */
function exceptionProblems({ except = [], ...template }: Template): Problem[] {
  return except.flatMap(({ names, ...caps }, index) => {
    const problems = [...emptyMembers('names', names), ...budgetProblems(caps, '')]
    for (const cap of Object.keys(caps))
      if (!Object.hasOwn(template, cap))
        problems.push({ path: cap, why: `needs the default of all others: ${cap} of the template` })
    if (Object.keys(caps).length === 0)
      problems.push({ path: 'names', why: 'have no cap: add perDay, perMonth or tokensPerDay' })
    return problems.map(({ path, why }) => ({ path: `except[${index}].${path}`, why }))
  })
}

export function selectorProblems({ selector = {} }: Manifest<'BudgetPolicy'>['spec']): Problem[] {
  const { agents, users, groups } = selector
  return [
    ...emptyMembers('selector.agents', agents),
    ...emptyMembers('selector.users', users),
    ...emptyMembers('selector.groups', groups),
  ]
}
