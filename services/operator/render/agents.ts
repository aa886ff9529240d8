import { type Manifest, tierOfAgent } from '@plat/resources'
import type { AgentEntry, AgentsFile } from '@plat/resources/rendered'
import { agentProblems } from '../validate/agent.ts'
import { type Declared, keyOf, sorted } from './declared.ts'
import { tiersByName } from './limits/provider-tools.ts'

/**
 * `Agent.spec.a2a` as the gateway's `a2a.routesFile`: every exposed agent. Problems of an Agent are reported when its
 * policy is rendered.
 */
export function renderAgents(declared: Declared): { file: AgentsFile } {
  const agents: Record<string, AgentEntry> = {}
  const tiers = tiersByName(declared.tiers)
  for (const agent of sorted(declared.agents)) {
    const { a2a } = agent.spec
    if (a2a?.expose !== true || a2a.endpoint === undefined || agentProblems(agent, declared).length > 0) continue
    const jurisdiction = tiers.get(tierOfAgent(agent.spec))?.spec.jurisdiction
    agents[keyOf(agent)] = { ...exposed(a2a, a2a.endpoint), ...(jurisdiction !== undefined && { jurisdiction }) }
  }
  return { file: { version: 1, agents } }
}

function exposed(a2a: NonNullable<Manifest<'Agent'>['spec']['a2a']>, endpoint: string): AgentEntry {
  return {
    endpoint,
    ...(a2a.description !== undefined && { description: a2a.description }),
    allowedCallers: [...(a2a.allowedCallers ?? [])],
    skills: (a2a.skills ?? []).map((skill) => ({ ...skill })),
    streaming: a2a.streaming ?? false,
    ...(a2a.protocolVersion === '0.3' && { protocolVersion: a2a.protocolVersion }),
    ...(a2a.timeoutSeconds !== undefined && { timeoutSeconds: a2a.timeoutSeconds }),
    trust: a2a.trust ?? 'trusted',
    version: a2a.version ?? '1.0.0',
  }
}
