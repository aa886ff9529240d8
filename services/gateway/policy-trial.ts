import { loadCedar } from '@plat/resources/cedar'
import {
  type BuiltinServer,
  type Decision,
  type Denial,
  type Identity,
  isDenial,
  labelsByTrust,
  type Target,
} from './call/index.ts'
import { type LimitFiles, LimitsTrial, type UsedBefore } from './decide/budgets/trial.ts'
import { decodePolicies } from './decide/policy/decode.ts'
import type { PolicyInput } from './decide/policy/policy-input.ts'
import { CandidatePolicies } from './decide/policy/simulate/candidate.ts'
import { recorded } from './decide/policy/simulate/recorded.ts'
import { trialIdentity } from './decide/policy/simulate/trial-identity.ts'
import { decodeAgents } from './targets/a2a/decode.ts'
import { type Agents, buildAgents } from './targets/a2a/registry.ts'
import { targetOf as agentTarget, reached } from './targets/a2a/stage.ts'
import { decodeUpstreams } from './targets/servers/decode.ts'
import { buildRegistry, type Registry } from './targets/servers/registry.ts'
import { currentTool, targetOf, toolsScope } from './targets/servers/stage.ts'

export type { UsedBefore } from './decide/budgets/trial.ts'

/** Files that are tried, as the gateway would read them. */
export interface TrialFiles extends LimitFiles {
  /** Content of `policyFile`. */
  readonly policies: Uint8Array
  /** Content of `upstreamsFile`. */
  readonly upstreams: Uint8Array
  /** Content of `a2a.routesFile`. */
  readonly agents: Uint8Array
  readonly maxDelegationDepth: number
  /** `upstreams` of gateway.json. */
  readonly statics: Readonly<Record<string, string>>
  /** Whether policies judge calls of models (`modelPolicy`). */
  readonly judgesModels: boolean
  /** Provider of each model route; null: the route does not exist. */
  readonly providerOf: (route: string) => string | null
}

/** A `tools/call`, a message to an agent (`a2a/<namespace>/<agent>` and the skill), or a call of a model (`llm/<route>` and the model), of an agent. */
export interface TrialCall {
  readonly namespace: string
  readonly agent: string
  readonly tier: string
  readonly scopes: readonly string[]
  readonly server: string
  readonly tool: string
  /** JSON text; null: not known. */
  readonly args: string | null
  readonly user: string | null
  readonly groups: readonly string[]
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** Rates and budgets are judged by these counters, where policies allow the call. */
  readonly used: UsedBefore
  /** Milliseconds since the epoch. */
  readonly now: number
}

export interface Verdict {
  /** Null: it depends on arguments that are not known. */
  readonly action: Decision['action'] | null
  /** Every action that some arguments bring about. */
  readonly possible: readonly Decision['action'][]
  /** Code of the refusal; null: not refused. */
  readonly code: string | null
  readonly policy: string | null
  readonly rule: string | null
  readonly reason: string
}

/** Decisions by files that are not in force. */
export interface PolicyTrial {
  /** Returns an error message if the call has no limit to which the given counters belong. */
  judge(call: TrialCall): Verdict | string
  /** The verdict on a recorded call, from its last record, and that of the record. Null: policies did not judge it. */
  judgeRecord(
    record: Readonly<Record<string, unknown>>,
  ): { readonly was: Decision['action']; readonly verdict: Verdict } | null
}

/** Reads the files with the gateway's own readers. Returns every problem, one line each, if there are any. */
export async function openPolicyTrial(
  files: TrialFiles,
): Promise<PolicyTrial | { readonly problems: readonly string[] }> {
  const policies = decodePolicies(files.policies)
  if (!policies.ok) return policies
  const upstreams = decodeUpstreams(files.upstreams)
  if ('problems' in upstreams) return { problems: upstreams.problems }
  const agents = decodeAgents(files.agents)
  if (!agents.ok) return agents
  const limits = LimitsTrial.read(files)
  if (!(limits instanceof LimitsTrial)) return { problems: limits }
  const needsCedar = policies.file.policies.some(({ cedar }) => cedar !== '')
  const candidate = CandidatePolicies.compile(policies.file, needsCedar ? await loadCedar() : null)
  if (!(candidate instanceof CandidatePolicies)) return { problems: candidate }
  const registry = buildRegistry(upstreams.file, files.statics, BUILTINS)
  return new Trial(files, { policies: candidate, registry, agents: buildAgents(agents.file), limits })
}

interface TrialParts {
  readonly policies: CandidatePolicies
  readonly registry: Registry
  readonly agents: Agents
  readonly limits: LimitsTrial
}

class Trial implements PolicyTrial {
  readonly #files: Pick<TrialFiles, 'judgesModels' | 'providerOf' | 'maxDelegationDepth'>
  readonly #parts: TrialParts

  constructor(files: TrialFiles, parts: TrialParts) {
    this.#files = files
    this.#parts = parts
  }

  judge(call: TrialCall): Verdict | string {
    const identity = trialIdentity(call)
    const target = this.#targetOf(call, identity)
    if ('code' in target) return target
    const { labels, tool, kind } = target
    const input = {
      ...{ identity, target, tool, ...MESSAGES[kind] },
      taints: call.taints,
      sinks: labels.sinks,
      args: call.args === null ? ('unknown' as const) : Buffer.from(call.args),
      now: call.now,
    }
    const judged = kind === 'model' && !this.#files.judgesModels ? BY_SCOPE : this.#verdict(input)
    return judged.verdict.action === 'allow' && judged.decision !== null
      ? this.#limited(call, { identity, target, decision: judged.decision }, judged.verdict)
      : judged.verdict
  }

  /** The verdict of rates and budgets about a call that policies allow. */
  #limited(
    { now, used, tool }: TrialCall,
    call: { readonly identity: Identity; readonly target: Target; readonly decision: Decision },
    verdict: Verdict,
  ): Verdict | string {
    const { kind, key } = call.target
    const model = kind === 'model' ? `${this.#files.providerOf(key) ?? ''}/${tool}` : null
    const denial = this.#parts.limits.judge({ ...call, model, used, now })
    if (denial === null || typeof denial === 'string') return denial ?? verdict
    return { ...refused(denial), policy: verdict.policy, rule: verdict.rule }
  }

  judgeRecord(record: Readonly<Record<string, unknown>>) {
    const found = recorded(record, (identity, server, tool) =>
      currentTool(this.#parts.registry.resolve(identity, server), tool),
    )
    return found === null ? null : { was: found.was.action, verdict: this.#verdict(found.input).verdict }
  }

  /** The steps before policies, in the order of the pipeline. */
  #targetOf(call: TrialCall, identity: Identity): Target | Verdict {
    if (call.server.startsWith(MODELS)) return this.#modelTarget(call, identity)
    return call.server.startsWith(AGENTS) ? this.#agentTarget(call, identity) : this.#serverTarget(call, identity)
  }

  #modelTarget(call: TrialCall, identity: Identity): Target | Verdict {
    const route = call.server.slice(MODELS.length)
    const target = modelTarget(call, identity)
    if ('action' in target || this.#files.providerOf(route) !== null) return target
    return no('unknown_route', `no model route is named ${route}`)
  }

  #agentTarget({ server, tool }: TrialCall, identity: Identity): Target | Verdict {
    const agent = reached({ server, facts: { identity } }, this.#parts.agents, {
      maxDelegationDepth: this.#files.maxDelegationDepth,
      mayCall: () => true,
    })
    if (isDenial(agent)) return refused(agent)
    if (!agent.offers(tool)) return no('unknown_skill', `${server} has no skill ${JSON.stringify(tool)}`)
    return agentTarget({ name: tool }, agent)
  }

  #serverTarget({ server: name, tool }: TrialCall, identity: Identity): Target | Verdict {
    const server = this.#parts.registry.nameOf(identity, name)
    const scope = toolsScope(identity, server, tool)
    if (scope !== null) return no('insufficient_scope', `scope ${scope} is required`)
    const upstream = this.#parts.registry.resolve(identity, server)
    if (isDenial(upstream)) return refused(upstream)
    return targetOf({ operation: 'mcp.call', server, name: tool }, upstream)
  }

  #verdict(input: PolicyInput): Judged {
    const { decision, possible } = this.#parts.policies.judge(input)
    if (decision === null) {
      const unjudged = { code: null, policy: null, rule: null, reason: 'it depends on the arguments' }
      return { decision, verdict: { action: null, possible, ...unjudged } }
    }
    const { action, policy, rule, reason } = decision
    const code = action === 'deny' ? (decision.code ?? 'policy_denied') : null
    return { decision, verdict: { action, possible, code, policy, rule, reason } }
  }
}

/** A verdict with the decision of the policies; null: they cannot decide. */
interface Judged {
  readonly decision: Decision | null
  readonly verdict: Verdict
}

const MODELS = 'llm/'
const AGENTS = 'a2a/'

/** The message that is tried, by the kind of its target. */
const MESSAGES = {
  mcp: { operation: 'mcp.call', method: 'tools/call' },
  builtin: { operation: 'mcp.call', method: 'tools/call' },
  model: { operation: 'model.generate', method: 'chat/completions' },
  a2a: { operation: 'a2a.send', method: 'SendMessage' },
} as const

/** Servers of the gateway, as policies see them. Their own checks, such as domains and tiers, are not tried. */
const BUILTINS: readonly BuiltinServer[] = [
  builtin('plat-web', 'untrusted', 'public'),
  builtin('plat-memory', 'trusted', 'internal'),
  builtin('plat-k8s', 'untrusted', 'internal'),
]

function builtin(name: string, trust: Target['trust'], dataClass: Target['dataClass']): BuiltinServer {
  return { name, title: name, instructions: '', trust, dataClass, labels: () => labelsByTrust[trust], tools: () => [] }
}

const BY_SCOPE: Judged = {
  decision: {
    ...{ action: 'allow', policy: null, rule: null, reason: '', revision: '', engines: [], wouldBe: [], rates: [] },
  },
  verdict: {
    ...{ action: 'allow', possible: ['allow'], code: null, policy: null, rule: null },
    reason: 'scope: policies do not judge calls of models (modelPolicy)',
  },
}

function refused({ code, reason }: Pick<Denial, 'code' | 'reason'>): Verdict {
  return no(code, reason)
}

function no(code: string, reason: string): Verdict {
  return { action: 'deny', possible: ['deny'], code, policy: null, rule: null, reason }
}

function modelTarget({ server, tool }: TrialCall, { scopes }: Identity): Target | Verdict {
  const route = server.slice(MODELS.length)
  if (!scopes.has(`models:${route}`)) return no('insufficient_scope', `scope models:${route} is required`)
  return {
    ...{ kind: 'model', key: route, server, tool, trust: 'untrusted', dataClass: 'internal', jurisdiction: null },
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  }
}
