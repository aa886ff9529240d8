import type { PolicyEntry } from '@plat/resources/rendered'
import { addressOf } from './address.ts'
import type { ListedAgent, ListedRoute } from './parts.ts'
import type { AgentView } from './view.ts'

interface Known {
  readonly policies: readonly PolicyEntry[]
  readonly models: readonly ListedRoute[]
  readonly exposed: readonly ListedAgent[]
}

/** Agents that a policy governs, that have a model route to themselves, or that others may call. */
export function agentViews({ policies, models, exposed }: Known): readonly AgentView[] {
  const views = new Map<string, AgentView>()
  const named = (id: string): AgentView => {
    const [namespace = '', agent = ''] = id.split('/')
    return views.getOrInsertComputed(id, () => ({ id, namespace, agent, policies: [], models: [], exposed: null }))
  }
  for (const { name, namespace, agents } of policies)
    for (const agent of agents) named(`${namespace}/${agent}`).policies.push(name)
  for (const { name, agents } of models)
    for (const agent of agents) if (agent.includes('/')) named(agent).models.push(name)
  for (const one of exposed) {
    const id = `${one.namespace}/${one.name}`
    views.set(id, { ...named(id), exposed: exposedView(one) })
  }
  return [...views.values()]
}

function exposedView({ skills, ...agent }: ListedAgent): NonNullable<AgentView['exposed']> {
  const { endpoint, protocolVersion, version, description, trust, streaming, jurisdiction } = agent
  return {
    ...{ endpoint: addressOf(endpoint), protocolVersion, version, description, trust, streaming, jurisdiction },
    skills: skills.map(({ id }) => id),
  }
}
