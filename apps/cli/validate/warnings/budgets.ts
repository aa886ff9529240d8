import { glob } from '@plat/core'
import type { Manifest } from '@plat/resources'
import { groupsElsewhere } from './groups.ts'
import { Names } from './names.ts'
import { routeOf } from './reach.ts'
import type { Surroundings, Warning } from './surroundings.ts'

type Budget = Manifest<'BudgetPolicy'>
type Agent = Manifest<'Agent'>

/** Policies of this namespace select agents of every other one. */
const PLATFORM_NAMESPACE = 'plat-system'

/** Entries of a selector that match nothing. */
export function* selectorWarnings(budget: Budget, surroundings: Surroundings): Generator<Warning> {
  const { agents = [], groups = [], namespace } = budget.spec.selector ?? {}
  const { declared } = surroundings
  const spaces = new Names('namespace with resources', [...declared.agents, ...declared.servers].map(namespaceOf))
  const elsewhere = namespace === undefined ? null : spaces.problem(namespace)
  if (elsewhere !== null) yield { object: budget, field: 'spec.selector.namespace', text: elsewhere }
  const names = agentNames(budget, surroundings)
  for (const [index, pattern] of agents.entries()) {
    const text = elsewhere === null ? names.problem(pattern) : null
    if (text !== null) yield { object: budget, field: `spec.selector.agents[${index}]`, text }
  }
  const known = new Names('group', groupsElsewhere(surroundings, budget))
  for (const [index, group] of groups.entries()) {
    const text = known.misspelling(group)
    if (text !== null) yield { object: budget, field: `spec.selector.groups[${index}]`, text }
  }
}

/** Names in templates that match nothing: agents that do not exist, and groups that are written like others. */
export function* templateWarnings(budget: Budget, surroundings: Surroundings): Generator<Warning> {
  const groups = new Names('group', groupsElsewhere(surroundings, budget))
  const agents = agentNames(budget, surroundings)
  for (const [at, { per, names = [], except = [] }] of (budget.spec.each ?? []).entries()) {
    if (per !== 'group' && per !== 'agent') continue
    const lists = [
      { field: 'names', names },
      ...except.map(({ names }, index) => ({ field: `except[${index}].names`, names })),
    ]
    for (const { field, names } of lists) {
      for (const [index, name] of names.entries()) {
        const text = per === 'group' ? groups.misspelling(name) : agents.problem(name)
        if (text !== null) yield { object: budget, field: `spec.each[${at}].${field}[${index}]`, text }
      }
    }
  }
}

function agentNames(budget: Budget, { declared }: Surroundings): Names {
  const within = agentsWithin(budget, declared.agents).map(({ metadata }) => metadata)
  return new Names(
    'agent that this budget can select',
    within.flatMap((agent) => [agent.name, `${agent.namespace}/${agent.name}`]),
  )
}

/** Models and tools without a price that an agent with a limit in money calls: models are refused, tools are free. */
export function* priceWarnings(agent: Agent, surroundings: Surroundings): Generator<Warning> {
  const { prices } = surroundings
  const limit = limitOf(agent, surroundings)
  if (limit === null || prices === null) return
  const unpriced = agent.spec.model?.endpoint === undefined ? [] : prices.unpriced(routeOf(agent))
  for (const model of unpriced) {
    const text = `${model} has no price, so its calls are refused under ${limit}; add it to "models" of the pricing file, or run plat pricing update`
    yield { object: agent, field: 'spec.model', text }
  }
  for (const [index, { name, serverRef }] of (agent.spec.tools ?? []).entries()) {
    const server = `${serverRef?.namespace ?? agent.metadata.namespace}/${serverRef?.name ?? name}`
    const priced = prices.hasToolPrice(server)
    // Without any tool price only the model is meant to be limited.
    if (priced === true || (priced === null && agent.spec.model !== undefined)) continue
    const text = `no tool of ${server} has a price, so its calls cost nothing under ${limit}; add "${server}/*" to "tools" of the pricing file`
    yield { object: agent, field: `spec.tools[${index}].name`, text }
  }
}

/** Names the limit in money of an agent; null: it has none. */
function limitOf(agent: Agent, { declared, config }: Surroundings): string | null {
  const { perSessionUSD, perDayUSD, perMonthUSD } = agent.spec.budget ?? {}
  if ((perSessionUSD ?? perDayUSD ?? perMonthUSD) !== undefined) return 'spec.budget'
  const policy = declared.budgets.find((budget) => limitsMoney(budget) && selects(budget, agent))
  if (policy !== undefined) return `BudgetPolicy ${policy.metadata.namespace}/${policy.metadata.name}`
  return config.sessionBudgetUSD > 0 ? 'sessionBudgetUSD' : null
}

function limitsMoney({ spec }: Budget): boolean {
  return [spec, ...(spec.each ?? [])].some(
    ({ perDay, perMonth }) => (perDay ?? perMonth ?? spec.perSession) !== undefined,
  )
}

function selects(budget: Budget, agent: Agent): boolean {
  const { agents } = budget.spec.selector ?? {}
  const { namespace, name } = agent.metadata
  const matches = (pattern: string) => glob(pattern)(pattern.includes('/') ? `${namespace}/${name}` : name)
  return agentsWithin(budget, [agent]).length > 0 && (agents === undefined || agents.some(matches))
}

function agentsWithin({ metadata, spec }: Budget, agents: readonly Agent[]): readonly Agent[] {
  const namespace =
    spec.selector?.namespace ?? (metadata.namespace === PLATFORM_NAMESPACE ? undefined : metadata.namespace)
  return namespace === undefined ? agents : agents.filter((agent) => agent.metadata.namespace === namespace)
}

function namespaceOf({ metadata }: Manifest): string {
  return metadata.namespace
}
