import { quantityToMicros } from '@plat/core'
import type { Manifest } from '@plat/resources'
import type { BudgetEntry, BudgetsFile } from '@plat/resources/rendered'
import { agentProblems } from '../validate/agent.ts'
import { budgetProblems, selectorProblems, templateProblems } from '../validate/budget.ts'
import { type Problem, problemLine, shareProblems } from '../validate/problem.ts'
import { type Declared, keyOf, sorted } from './declared.ts'

/** Whose policies may select agents of other namespaces: who writes there runs the platform. */
const PLATFORM_NAMESPACE = 'plat-system'

/** Stands for the name of a BudgetPolicy in the entry of a namespace that exceeds its share; no name has a dot. */
const EXCEEDED = 'share.exceeded'

/** Alert percentages of the budget of an Agent. */
const AGENT_ALERTS = [50, 80, 100]

/**
 * `Agent.spec.budget` and BudgetPolicies as the gateway's budgetsFile. An invalid BudgetPolicy becomes a budget of 0 for
 * all callers that it selects, so that an error never means unlimited spending; one that selects another namespace is ignored. The
 * problems of a refused Agent are reported with its policy; it gets a budget of 0, because static routes may need no policy.
 */
export function renderBudgets(declared: Declared): { file: BudgetsFile; refused: string[] } {
  const { currency } = declared
  const refused: string[] = []
  const budgets: BudgetEntry[] = []
  /** Namespaces of objects that are left out: one entry for all of them takes little room. */
  const exceeding = new Set<string>()
  for (const agent of sorted(declared.agents)) {
    const { namespace, name } = agent.metadata
    if (shareProblems(agent, declared).length > 0) exceeding.add(namespace)
    else if (agentProblems(agent, declared).length === 0) budgets.push(...agentBudgets(agent))
    else if (agent.spec.budget !== undefined)
      budgets.push(...nothing(`Agent/${keyOf(agent)}`, { namespaces: [namespace], agents: [name] }))
  }
  for (const policy of sorted(declared.budgets)) {
    const foreign = foreignProblems(policy)
    const share = shareProblems(policy, declared)
    const { spec } = policy
    const problems = [...share, ...foreign, ...selectorProblems(spec), ...budgetProblems(spec, currency)]
    problems.push(...templateProblems(spec, currency))
    refused.push(...problems.map((problem) => problemLine(policy, problem)))
    if (problems.length === 0) budgets.push(...policyBudgets(policy))
    else if (share.length > 0) exceeding.add(policy.metadata.namespace)
    else if (foreign.length === 0) budgets.push(...nothing(sourceOf(policy), matchOf(policy)))
  }
  for (const namespace of exceeding)
    budgets.push(...nothing(`BudgetPolicy/${namespace}/${EXCEEDED}`, { namespaces: [namespace] }))
  return { file: { version: 1, currency, budgets }, refused }
}

/** A policy restrains its own namespace. */
function foreignProblems({ metadata, spec }: Manifest<'BudgetPolicy'>): Problem[] {
  const { namespace } = spec.selector ?? {}
  if (namespace === undefined || namespace === metadata.namespace) return []
  if (metadata.namespace === PLATFORM_NAMESPACE) return []
  const why = `only a policy in ${PLATFORM_NAMESPACE} may select another namespace than its own`
  return [{ path: 'selector.namespace', why }]
}

function agentBudgets(agent: Manifest<'Agent'>): BudgetEntry[] {
  const { perSessionUSD, perDayUSD, perMonthUSD } = agent.spec.budget ?? {}
  const { namespace, name } = agent.metadata
  const match = { namespaces: [namespace], agents: [name] }
  const caps = { session: perSessionUSD, day: perDayUSD, month: perMonthUSD }
  return moneyBudgets({ source: `Agent/${keyOf(agent)}`, match, alerts: AGENT_ALERTS }, caps)
}

function policyBudgets(policy: Manifest<'BudgetPolicy'>): BudgetEntry[] {
  const { perSession, perDay, perMonth, tokensPerDay, alerts = AGENT_ALERTS } = policy.spec
  const shared = { source: sourceOf(policy), match: matchOf(policy), alerts: [...alerts] }
  const budgets = moneyBudgets(shared, { session: perSession, day: perDay, month: perMonth })
  if (tokensPerDay !== undefined)
    budgets.push({ id: `${shared.source}/day-tokens`, ...shared, window: 'day', tokens: tokensPerDay })
  return [...budgets, ...(policy.spec.each ?? []).flatMap((template) => templateBudgets(shared, template))]
}

type Template = NonNullable<Manifest<'BudgetPolicy'>['spec']['each']>[number]

const TEMPLATE_CAPS = [
  { cap: 'perDay', window: 'day', name: 'day' },
  { cap: 'perMonth', window: 'month', name: 'month' },
  { cap: 'tokensPerDay', window: 'day', name: 'day-tokens' },
] as const

/** One entry for each cap of a template, with the amounts of its exceptions. */
function templateBudgets(
  shared: Pick<BudgetEntry, 'source' | 'match' | 'alerts'>,
  { per, names, except = [], ...template }: Template,
): BudgetEntry[] {
  return TEMPLATE_CAPS.flatMap(({ cap, window, name }) => {
    const all = template[cap]
    if (all === undefined) return []
    const amountOf = (value: string | number) => (cap === 'tokensPerDay' ? Number(value) : microsOf(value))
    const others = except.flatMap(({ names, [cap]: own }) =>
      own === undefined ? [] : [{ names, amount: amountOf(own) }],
    )
    return {
      ...{ id: `${shared.source}/${per}/${name}`, ...shared, window, per },
      ...(cap === 'tokensPerDay' ? { tokens: amountOf(all) } : { capMicros: amountOf(all) }),
      ...(names !== undefined && { names }),
      ...(others.length > 0 && { except: others }),
    }
  })
}

function moneyBudgets(
  shared: Pick<BudgetEntry, 'source' | 'match' | 'alerts'>,
  caps: Readonly<Record<BudgetEntry['window'], string | number | undefined>>,
): BudgetEntry[] {
  const budgets: BudgetEntry[] = []
  for (const window of ['session', 'day', 'month'] as const) {
    const cap = caps[window]
    if (cap === undefined) continue
    budgets.push({ id: `${shared.source}/${window}`, ...shared, window, capMicros: microsOf(cap) })
  }
  return budgets
}

function nothing(source: string, match: BudgetEntry['match']): BudgetEntry[] {
  const shared = { source, match, window: 'day' } as const
  return [
    { id: `${source}/refused`, ...shared, alerts: [], capMicros: 0 },
    { id: `${source}/refused-tokens`, ...shared, alerts: [], tokens: 0 },
  ]
}

function sourceOf(policy: Manifest<'BudgetPolicy'>): string {
  return `BudgetPolicy/${keyOf(policy)}`
}

function matchOf({ metadata, spec }: Manifest<'BudgetPolicy'>): BudgetEntry['match'] {
  const { agents, users, groups, namespace } = spec.selector ?? {}
  const own = metadata.namespace === PLATFORM_NAMESPACE ? undefined : metadata.namespace
  const selected = namespace ?? own
  return {
    ...(selected !== undefined && { namespaces: [selected] }),
    ...(isUsable(agents) && { agents: [...agents] }),
    ...(isUsable(users) && { users: [...users] }),
    ...(isUsable(groups) && { groups: [...groups] }),
  }
}

/** Returns false for a list with an empty name, which the gateway refuses; the budget is then replaced by one that allows nothing. */
function isUsable(list: readonly string[] | undefined): list is readonly string[] {
  return list !== undefined && !list.includes('')
}

/** Rounded down; what is beyond all counting can never be reached. */
function microsOf(cap: string | number): number {
  return quantityToMicros(cap) ?? Number.MAX_SAFE_INTEGER
}
