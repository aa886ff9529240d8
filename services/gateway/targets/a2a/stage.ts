import {
  type Call,
  type Denial,
  deny,
  type Identity,
  isDenial,
  labelsByTrust,
  type Outcome,
  type Slot,
  type Snapshots,
  type Target,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { PushRule } from './push.ts'
import { type Agents, buildAgents, type ExposedAgent, namesIn } from './registry.ts'
import type { BoundKind } from './tasks/bindings.ts'

/** Where the agents stand in the snapshot. */
export const agentsSlot: Slot<Agents> = { name: 'a2a', initial: buildAgents(null) }

/** A2A "task not found": what does not exist and what is somebody else's look the same. */
const TASK_NOT_FOUND = -32001
/** A2A "unsupported operation". */
const UNSUPPORTED_OPERATION = -32004

/** What a request names, as its plane read it. */
export interface NamedIn {
  readonly tasks: readonly string[]
  readonly contexts: readonly string[]
  /** Where its sender wants to be told of a task. */
  readonly pushURLs: readonly string[]
  /** Whether it asks for an event stream. */
  readonly streams: boolean
}

/** What `plat_gateway_a2a_calls_total` counts: `in` is the way to the gateway, `out` that to the agent and back. */
export type CountCall = (hop: 'in' | 'out', kind: string, decision: 'allow' | 'deny' | 'require_approval') => void

export interface AgentResolveOptions {
  readonly snapshots: Snapshots
  readonly namedIn: (call: Call) => NamedIn
  readonly owns: (identity: Identity, server: string, kind: BoundKind, id: string) => boolean
  readonly pushRule: PushRule
  readonly maxDelegationDepth: number
  readonly count: CountCall
}

/**
 * From `a2a/<ns>/<agent>` to the agent. The scope comes first, so that names cannot be found out by trying; then whether the agent lets
 * the caller in, how often the caller was delegated, the skill, and whose tasks are named.
 */
export function createAgentResolve(options: AgentResolveOptions): Stage<'resolve', 'identity', 'target'> {
  const { snapshots, count } = options
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      const agent = reached(call, call.snapshot.get(agentsSlot), options.maxDelegationDepth)
      const no = isDenial(agent) ? agent : refused(call, agent, options)
      if (no !== null) {
        count('in', call.method, 'deny')
        return no
      }
      return isDenial(agent) ? agent : { target: targetOf(call, agent) }
    },
    settle: (call: Call, outcome) => counted(count, call.method, outcome),
    still(call: Call<'identity' | 'target'>) {
      if (snapshots.current === call.snapshot) return null
      const agents = snapshots.current.get(agentsSlot)
      const began = call.snapshot.get(agentsSlot)
      if (agents === began) return null
      const agent = reached(call, agents, options.maxDelegationDepth)
      if (isDenial(agent)) return agent
      return agent.endpoint === began.agent(call.server)?.endpoint
        ? null
        : deny('unknown_agent', `${call.server} has moved`)
    },
  })
}

/** The agent, where the caller may call it at all. */
function reached(
  { server, facts: { identity } }: Pick<Call<'identity'>, 'server' | 'facts'>,
  agents: Agents,
  maxDelegationDepth: number,
): ExposedAgent | Denial {
  const [namespace, name] = namesIn(server)
  const { scopes } = identity
  const isNear = identity.namespace === namespace
  if (!scopes.has(`agents:${namespace}/${name}`) && !(isNear && scopes.has(`agents:${name}`))) {
    const scope = isNear ? `agents:${name}` : `agents:${namespace}/${name}`
    return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
  }
  const agent = agents.agent(server)
  if (agent === null) return deny('unknown_agent', `no agent ${namespace}/${name} is exposed`)
  if (!agent.admits(identity))
    return deny('caller_not_allowed', `${server} does not take calls of ${identity.namespace}/${identity.agent}`)
  return identity.chain.length > maxDelegationDepth
    ? deny(
        'delegation_too_deep',
        `the caller acts at the end of ${identity.chain.length} delegations, which is more than ${maxDelegationDepth}`,
      )
    : agent
}

function refused(
  call: Call<'identity'>,
  agent: ExposedAgent,
  { namedIn, owns, pushRule }: AgentResolveOptions,
): Denial | null {
  if (call.name !== null && !agent.offers(call.name))
    return deny('unknown_skill', `${agent.server} has no skill ${JSON.stringify(call.name)}`)
  const { tasks, contexts, pushURLs, streams } = namedIn(call)
  if (streams && !agent.streaming)
    return deny('unknown_method', `${agent.server} does not stream`, { data: { rpc: UNSUPPORTED_OPERATION } })
  const { identity } = call.facts
  const owned = (kind: BoundKind) => (id: string) => owns(identity, agent.server, kind, id)
  if (!tasks.every(owned('task')) || !contexts.every(owned('context')))
    return deny('not_found', 'no such task or context', { data: { rpc: TASK_NOT_FOUND } })
  for (const url of pushURLs) {
    const no = pushRule(url)
    if (no !== null) return no
  }
  return null
}

/** What agents tell one another is at least what a company keeps to itself. */
function targetOf({ name }: Call, { server, trust, jurisdiction }: ExposedAgent): Target {
  return {
    ...unresolved,
    kind: 'a2a',
    key: server,
    server,
    tool: name === null ? null : `skill:${name}`,
    trust,
    labels: labelsByTrust[trust],
    dataClass: 'internal',
    jurisdiction,
  }
}

/** A call that was refused after it was forwarded was let in, and its answer was not let out. */
function counted(count: CountCall, method: string, { result, forwarded }: Outcome): void {
  const isDenied = result === 'denied'
  const judged = isDenied && !forwarded ? 'deny' : 'allow'
  count('in', method, result === 'rewound' ? 'require_approval' : judged)
  if (forwarded) count('out', method, isDenied ? 'deny' : 'allow')
}
