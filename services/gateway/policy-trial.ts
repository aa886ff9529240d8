import { loadCedar } from '@plat/resources/cedar'
import { type Decision, type Identity, isDenial, type Target } from './call/index.ts'
import { decodePolicies } from './decide/policy/decode.ts'
import type { PolicyInput } from './decide/policy/policy-input.ts'
import { CandidatePolicies } from './decide/policy/simulate/candidate.ts'
import { recorded } from './decide/policy/simulate/recorded.ts'
import { decodeUpstreams } from './targets/servers/decode.ts'
import { buildRegistry, type Registry } from './targets/servers/registry.ts'
import { targetOf, toolsScope } from './targets/servers/stage.ts'

/** Files that are tried, as the gateway would read them. */
export interface TrialFiles {
  /** Content of `policyFile`. */
  readonly policies: Uint8Array
  /** Content of `upstreamsFile`. */
  readonly upstreams: Uint8Array
  /** `upstreams` of gateway.json. */
  readonly statics: Readonly<Record<string, string>>
  /** Whether policies judge calls of models (`modelPolicy`). */
  readonly judgesModels: boolean
}

/** A `tools/call`, or a call of a model (`llm/<route>` and the model), of an agent. */
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
  judge(call: TrialCall): Verdict
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
  const needsCedar = policies.file.policies.some(({ cedar }) => cedar !== '')
  const candidate = CandidatePolicies.compile(policies.file, needsCedar ? await loadCedar() : null)
  if (!(candidate instanceof CandidatePolicies)) return { problems: candidate }
  return new Trial(candidate, buildRegistry(upstreams.file, files.statics), files.judgesModels)
}

class Trial implements PolicyTrial {
  readonly #policies: CandidatePolicies
  readonly #registry: Registry
  readonly #judgesModels: boolean

  constructor(policies: CandidatePolicies, registry: Registry, judgesModels: boolean) {
    this.#judgesModels = judgesModels
    this.#policies = policies
    this.#registry = registry
  }

  judge(call: TrialCall): Verdict {
    const identity = identityOf(call)
    const isModel = call.server.startsWith(MODELS)
    const target = isModel ? modelTarget(call, identity) : this.#serverTarget(call, identity)
    if ('code' in target) return target
    if (isModel && !this.#judgesModels) return BY_SCOPE
    const { labels, tool } = target
    return this.#verdict({
      identity,
      target,
      tool,
      operation: isModel ? 'model.generate' : 'mcp.call',
      method: isModel ? 'chat/completions' : 'tools/call',
      taints: call.taints,
      sinks: labels.sinks,
      args: call.args === null ? 'unknown' : Buffer.from(call.args),
      now: call.now,
    })
  }

  judgeRecord(record: Readonly<Record<string, unknown>>) {
    const found = recorded(record, (identity, server, tool) => {
      const upstream = this.#registry.resolve(identity, server)
      return isDenial(upstream) ? [] : upstream.labels.of(tool).sinks
    })
    return found === null ? null : { was: found.was.action, verdict: this.#verdict(found.input) }
  }

  /** The steps before policies, in the order of the pipeline. */
  #serverTarget({ server, tool }: TrialCall, identity: Identity): Target | Verdict {
    const scope = toolsScope(identity, server, tool)
    if (scope !== null) return refused('insufficient_scope', `scope ${scope} is required`)
    const upstream = this.#registry.resolve(identity, server)
    if (isDenial(upstream)) return refused(upstream.code, upstream.reason)
    return targetOf({ operation: 'mcp.call', server, name: tool }, upstream)
  }

  #verdict(input: PolicyInput): Verdict {
    const { decision, possible } = this.#policies.judge(input)
    if (decision === null) {
      return { action: null, possible, code: null, policy: null, rule: null, reason: 'it depends on the arguments' }
    }
    const { action, policy, rule, reason } = decision
    const code = action === 'deny' ? (decision.code ?? 'policy_denied') : null
    return { action, possible, code, policy, rule, reason }
  }
}

const MODELS = 'llm/'

const BY_SCOPE: Verdict = {
  ...{ action: 'allow', possible: ['allow'], code: null, policy: null, rule: null },
  reason: 'scope: policies do not judge calls of models (modelPolicy)',
}

function refused(code: string, reason: string): Verdict {
  return { action: 'deny', possible: ['deny'], code, policy: null, rule: null, reason }
}

function modelTarget({ server, tool }: TrialCall, { scopes }: Identity): Target | Verdict {
  const route = server.slice(MODELS.length)
  if (!scopes.has(`models:${route}`)) return refused('insufficient_scope', `scope models:${route} is required`)
  return {
    ...{ kind: 'model', key: route, server, tool, trust: 'untrusted', dataClass: 'internal', jurisdiction: null },
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  }
}

function identityOf({ namespace, agent, tier, scopes, user, groups }: TrialCall): Identity {
  return {
    ...{ tenant: '', trustDomain: '', namespace, agent, session: 'trial', user, groups, tier },
    ...{ verified: null, scopes: new Set(scopes), jti: '', ancestors: [], delegators: [], forkedFrom: [], chain: [] },
    ...{ expiresAt: Number.MAX_SAFE_INTEGER, jkt: null, issuer: '', forkRoot: null, inheritedTaints: [] },
  }
}
