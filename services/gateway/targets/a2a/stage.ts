import type { BoundKind } from '../../call/bindings/binding.ts'
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

/** Snapshot slot of the agents. */
export const agentsSlot: Slot<Agents> = { name: 'a2a', initial: buildAgents(null) }

/** A2A "task not found", also for tasks of other owners. */
const TASK_NOT_FOUND = -32001
/** A2A "push notifications are not supported". */
const PUSH_NOT_SUPPORTED = -32003
/** A2A "unsupported operation". */
const UNSUPPORTED_OPERATION = -32004

/** Contents of a request, as parsed by its plane. */
export interface NamedIn {
  readonly tasks: readonly string[]
  readonly contexts: readonly string[]
  /** Webhooks for updates of a task. */
  readonly pushURLs: readonly string[]
  /** Whether it requests an event stream. */
  readonly streams: boolean
  /** Whether the agent may begin a task or a context. */
  readonly begins: boolean
  /** Version that the caller speaks. */
  readonly version: '1.0' | '0.3'
}

/** Counts `plat_gateway_a2a_calls_total`: `in` is the hop to the gateway, `out` the one to the agent and back. */
export type CountCall = (hop: 'in' | 'out', kind: string, decision: 'allow' | 'deny' | 'require_approval') => void

export interface AgentResolveOptions {
  readonly snapshots: Snapshots
  readonly namedIn: (call: Call) => NamedIn
  readonly owns: (identity: Identity, server: string, kind: BoundKind, id: string) => boolean
  /** Returns why the caller can own no further task or context now, or null. */
  readonly refusalFor: (identity: Identity) => Denial | null
  /** Resolves when owners that other replicas stored before are known; null: what is unknown stays unknown. */
  readonly catchUp: (identity: Identity) => Promise<void> | null
  /** Whether a caller may call agents of a namespace, exposed or not. */
  readonly mayCall: (caller: Identity, namespace: string) => boolean
  readonly pushRule: PushRule
  readonly maxDelegationDepth: number
  readonly count: CountCall
}

/**
 * Resolves `a2a/<ns>/<agent>`. Checks the scope first, so that names cannot be probed; then whether the agent admits
 * the caller, the depth of its delegation, the skill, and the owners of named tasks.
 */
export function createAgentResolve(options: AgentResolveOptions): Stage<'resolve', 'identity', 'target'> {
  const { snapshots, count } = options
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      const agent = reached(call, call.snapshot.get(agentsSlot), options)
      const verdict = () => {
        const no = isDenial(agent) ? agent : refused(call, agent, options)
        if (no !== null) count('in', call.method, 'deny')
        return no ?? (isDenial(agent) ? agent : { target: targetOf(call, agent) })
      }
      const isUnknown = !isDenial(agent) && !ownsAll(call, agent, options)
      const catchingUp = isUnknown ? options.catchUp(call.facts.identity) : null
      return catchingUp === null ? verdict() : catchingUp.then(verdict)
    },
    settle: (call: Call, outcome) => counted(count, call.method, outcome),
    still(call: Call<'identity' | 'target'>) {
      if (snapshots.current === call.snapshot) return null
      const agents = snapshots.current.get(agentsSlot)
      const began = call.snapshot.get(agentsSlot)
      if (agents === began) return null
      const agent = reached(call, agents, options)
      if (isDenial(agent)) return agent
      return agent.endpoint === began.agent(call.server)?.endpoint
        ? null
        : deny('unknown_agent', `${call.server} has moved`)
    },
  })
}

/** Returns the agent if the caller may call it. */
export function reached(
  { server, facts: { identity } }: Pick<Call<'identity'>, 'server' | 'facts'>,
  agents: Agents,
  { maxDelegationDepth, mayCall }: Pick<AgentResolveOptions, 'maxDelegationDepth' | 'mayCall'>,
): ExposedAgent | Denial {
  const [namespace, name] = namesIn(server)
  const { scopes } = identity
  const isNear = identity.namespace === namespace
  if (!scopes.has(`agents:${namespace}/${name}`) && !(isNear && scopes.has(`agents:${name}`))) {
    const scope = isNear ? `agents:${name}` : `agents:${namespace}/${name}`
    return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
  }
  const agent = mayCall(identity, namespace) ? agents.agent(server) : null
  if (agent === null) return deny('unknown_agent', `no agent ${namespace}/${name} is exposed`)
  if (!agent.admits(identity))
    return deny('caller_not_allowed', `${server} does not admit ${identity.namespace}/${identity.agent}`)
  return identity.chain.length > maxDelegationDepth
    ? deny(
        'delegation_too_deep',
        `the caller acts at the end of ${identity.chain.length} delegations, which is more than ${maxDelegationDepth}`,
      )
    : agent
}

/** Whether the caller owns every task and context that it names. */
function ownsAll(
  call: Call<'identity'>,
  { server }: ExposedAgent,
  { namedIn, owns }: Pick<AgentResolveOptions, 'namedIn' | 'owns'>,
): boolean {
  const { identity } = call.facts
  const { tasks, contexts } = namedIn(call)
  const owned = (kind: BoundKind) => (id: string) => owns(identity, server, kind, id)
  return tasks.every(owned('task')) && contexts.every(owned('context'))
}

function refused(call: Call<'identity'>, agent: ExposedAgent, options: AgentResolveOptions): Denial | null {
  const { namedIn, pushRule, refusalFor } = options
  if (call.name !== null && !agent.offers(call.name))
    return deny('unknown_skill', `${agent.server} has no skill ${JSON.stringify(call.name)}`)
  const { pushURLs, streams, begins, version } = namedIn(call)
  const { protocolVersion } = agent
  if (streams && !agent.streaming)
    return deny('unknown_method', `${agent.server} does not stream`, { data: { rpc: UNSUPPORTED_OPERATION } })
  if (protocolVersion === '0.3' && call.method === 'ListTasks')
    return deny('unknown_method', `${agent.server} speaks A2A 0.3, which lists no tasks`, {
      data: { rpc: UNSUPPORTED_OPERATION },
    })
  // The agent calls webhooks itself, so their content is not translated.
  if (pushURLs.length > 0 && version !== protocolVersion)
    return deny('forbidden', `${agent.server} notifies webhooks in A2A ${protocolVersion} only`, {
      data: { rpc: PUSH_NOT_SUPPORTED },
    })
  if (!ownsAll(call, agent, options))
    return deny('not_found', 'no such task or context', { data: { rpc: TASK_NOT_FOUND } })
  for (const url of pushURLs) {
    const no = pushRule(url)
    if (no !== null) return no
  }
  // The agent would do the work, and its response be refused.
  return begins ? refusalFor(call.facts.identity) : null
}

/** Data between agents is at least internal. */
export function targetOf({ name }: Pick<Call, 'name'>, { server, trust, jurisdiction }: ExposedAgent): Target {
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

/** A call refused after it was forwarded was allowed in, and its response denied. */
function counted(count: CountCall, method: string, { result, forwarded }: Outcome): void {
  const isDenied = result === 'denied'
  const judged = isDenied && !forwarded ? 'deny' : 'allow'
  count('in', method, result === 'rewound' ? 'require_approval' : judged)
  if (forwarded) count('out', method, isDenied ? 'deny' : 'allow')
}
