import { type Draft, NAMESPACE } from '../shared/draft.ts'

/** Rights of a new agent. */
export interface AgentParts {
  readonly agent: string
  /** Names of MCPServers. */
  readonly servers: readonly string[]
  /** Names of model routes of `gateway.json`. */
  readonly modelRoutes: readonly string[]
  /** `spec.model`. */
  readonly model?: object
}

/**
 * Adds an Agent that may use these servers and model routes, and its ToolPolicy. Returns what the person has to add by hand if the agent or the
 * policy exists.
 */
export function addAgent(draft: Draft, { agent, servers, modelRoutes, model }: AgentParts): readonly string[] {
  const steps: string[] = []
  if (draft.has('Agent', agent)) {
    for (const name of servers) steps.push(`add "- name: ${name}" to spec.tools of Agent ${NAMESPACE}/${agent}`)
    for (const route of modelRoutes) steps.push(`add "- ${route}" to spec.modelRoutes of Agent ${NAMESPACE}/${agent}`)
  } else {
    const tools = servers.map((name) => ({ name }))
    const spec = {
      policyRef: agent,
      ...(tools.length > 0 && { tools }),
      ...(model !== undefined && { model }),
      ...(modelRoutes.length > 0 && { modelRoutes }),
    }
    draft.resource('Agent', agent, { spec, comment: AGENT_COMMENT })
  }
  if (servers.length === 0 && draft.has('ToolPolicy', agent)) return steps
  const rules = servers.length === 0 ? [] : [{ name: 'tools', action: 'allow', match: { servers: [...servers] } }]
  if (draft.has('ToolPolicy', agent)) {
    steps.push(`add ${servers.join(', ')} to the rules of ToolPolicy ${NAMESPACE}/${agent}`)
    return steps
  }
  draft.resource('ToolPolicy', agent, { spec: { rules }, comment: POLICY_COMMENT })
  return steps
}

const AGENT_COMMENT = `An agent: which servers and models it may reach, and which policy judges its calls.
Start a program as this agent with: plat run <agent> -- <command>
Add a limit in money with:  budget: { perDayUSD: 5 }`

const POLICY_COMMENT = `A policy: what no rule allows is denied; deny wins over require_approval, and that over allow.
Narrow the first rule to the tools that are needed with:  tools: [read_file, list_*]
A rule with action: require_approval waits for a decision: plat approvals watch
Try a call without making it: plat policy test <agent> <server>/<tool> '<arguments as JSON>'`
