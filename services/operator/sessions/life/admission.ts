import { type Members, member, textOf } from '@plat/kubernetes'
import { type AgentSpec, grantsOf, type Resource, type TrustTierSpec, tierOfAgent } from '@plat/resources'
import { MAX_ENDED_PER_NAMESPACE } from '../../render/limits/ended.ts'
import { agentProblems } from '../../validate/agent.ts'
import { volumeProblem } from '../pod/pod.ts'
import { hasLiveView } from '../pod/sidecars.ts'
import type { SandboxSettings } from '../settings.ts'
import type { Hindrance } from './hindrance.ts'
import { inheritedTaints } from './taints.ts'
import { timeOf } from './times.ts'
import { isForkedWorkspace, type WorkspaceParts, workspaceHindrance } from './workspace.ts'

/** Sessions that one session may descend from, as many as the broker accepts. */
const MAX_FORKS = 16

/** When a session that waits for older ones to be forgotten is looked at again, in milliseconds. */
const LOOK_AGAIN_MS = 30_000

/** The pod of a session: from a warm pool, or dedicated. */
export type Mode = 'claim' | 'direct'

/** Inputs of a session. */
export interface Plan {
  readonly mode: Mode
  readonly agent: AgentSpec
  readonly tier: Resource<'TrustTier'>
  /** Scopes of its tokens. */
  readonly scopes: readonly string[]
  /** Sessions that it descends from, as `<agent>/<session>`, nearest first. */
  readonly forkedFrom: readonly string[]
  /** Taint labels that its tokens begin with. */
  readonly inheritedTaints: readonly string[]
  /** Its workspace begins with a VolumeSnapshot of its parent's. */
  readonly isForkedWorkspace: boolean
}

export interface AdmissionParts extends Omit<WorkspaceParts, 'agent'> {
  readonly agent: Resource<'Agent'> | undefined
  readonly tier: Resource<'TrustTier'> | undefined
  /** The SandboxTemplate that the tier names, of the session's namespace; null: there is none, or the session has a mode already. */
  readonly template: Members | null
  readonly settings: SandboxSettings
  /** ISO 4217: what the gateway counts in. */
  readonly currency: string
  /** The operator's own namespace. */
  readonly home: string
}

/** Whether a session can start, and how. Otherwise it waits, and its condition has the reason. */
export function admit(parts: AdmissionParts): Plan | Hindrance {
  const { session, agent, tier, settings, template } = parts
  const { agentRef } = session.spec
  if (agent === undefined) return { reason: 'AgentNotFound', message: `there is no Agent ${agentRef}` }
  const [problem] = agentProblems(agent, parts)
  if (problem !== undefined)
    return { reason: 'AgentRefused', message: `Agent ${agentRef} ${problem.path}: ${problem.why}` }
  if (tier === undefined) return { reason: 'TierNotFound', message: `there is no TrustTier ${tierOfAgent(agent.spec)}` }
  const refused = tierProblem(agent.spec, tier) ?? profileProblem(agent.spec, settings)
  if (refused !== null) return refused
  const granted = grantsOf(agent.metadata, agent.spec).scopes
  const scopes = session.spec.scopes ?? granted
  const beyond = scopes.find((scope) => !granted.includes(scope))
  if (beyond !== undefined)
    return { reason: 'ScopeNotGranted', message: `scopes: Agent ${agentRef} is not granted ${beyond}` }
  const waits = workspaceHindrance({ ...parts, agent: agent.spec })
  if (waits !== null) return waits
  const isForked = isForkedWorkspace(session, agent.spec)
  const taints = inheritedTaints(session, parts.parent, isForked ? timeOf(parts.snapshot?.takenAt) : null)
  if ('reason' in taints) return taints
  const mode = session.status?.mode ?? (isWarm(agent.spec, tier.spec, template) ? 'claim' : 'direct')
  return (
    proofProblem(tier.spec, mode) ?? {
      mode,
      agent: agent.spec,
      tier,
      scopes,
      forkedFrom: forkedFrom(session, parts.parent),
      inheritedTaints: taints,
      isForkedWorkspace: isForked,
    }
  )
}

/**
 * Revoking one of these sessions, or its agent, ends this one too. Of a parent that is gone only the name is known: it counts as a session of
 * the same Agent.
 */
function forkedFrom(
  { spec: { agentRef, fork } }: Resource<'AgentSession'>,
  parent: Resource<'AgentSession'> | undefined,
): readonly string[] {
  const names = [
    ...(fork?.parent === undefined ? [] : [`${parent?.spec.agentRef ?? agentRef}/${fork.parent}`]),
    ...(parent?.status?.forkedFrom ?? []),
  ]
  return names.slice(0, MAX_FORKS)
}

/**
 * Sessions that have ended are refused by name until their tokens are invalid, and each takes room in a file that all namespaces share.
 * Forgetting one would let its token in again: new sessions of the namespace wait instead.
 */
export function tooManyEnded(ended: number): Hindrance | null {
  if (ended < MAX_ENDED_PER_NAMESPACE) return null
  const message = `${ended} sessions of the namespace have ended within an hour: it begins when there are fewer than ${MAX_ENDED_PER_NAMESPACE}`
  return { reason: 'TooManyEnded', message, retryAfterMs: LOOK_AGAIN_MS }
}

export function isPlan(answer: Plan | Hindrance): answer is Plan {
  return 'mode' in answer
}

function tierProblem(agent: AgentSpec, { metadata, spec }: Resource<'TrustTier'>): Hindrance | null {
  const { profile = 'default' } = agent
  if (spec.allowedProfiles !== undefined && !spec.allowedProfiles.includes(profile)) {
    return { reason: 'ProfileNotAllowed', message: `TrustTier ${metadata.name} does not allow the profile ${profile}` }
  }
  const keys = [agent.model, ...(agent.model?.fallbacks ?? [])].flatMap((one) => one?.apiKeySecretRef?.name ?? [])
  const problem = volumeProblem(spec, new Set(keys))
  return problem === null ? null : { reason: 'TierRefused', message: `TrustTier ${metadata.name} ${problem}` }
}

function profileProblem(agent: AgentSpec, settings: SandboxSettings): Hindrance | null {
  const { profile } = agent
  const missing = (flag: string) => ({ reason: 'ProfileNotServed', message: `profile ${profile}: set ${flag}` })
  if (profile === 'browser' && settings.browserImage === '') return missing('-browser-image')
  if (profile === 'codeInterpreter' && settings.codeInterpreterImage === '') return missing('-code-interpreter-image')
  if (hasLiveView(agent) && Object.keys(settings.gatewayLabels).length === 0) {
    const message = 'browser.liveView: set -gateway-labels, without which every pod could see the browser'
    return { reason: 'ProfileNotServed', message }
  }
  return null
}

/** Whether a warm pod provides everything that an Agent requires, with the isolation of its tier. */
function isWarm(
  agent: AgentSpec,
  { warmPool, runtimeClassName = '' }: TrustTierSpec,
  template: Members | null,
): boolean {
  if (warmPool === undefined || template === null) return false
  const { profile = 'default', workspace, command, args, resources, env = [] } = agent
  if (profile !== 'default' || [workspace, command, args, resources].some((part) => part !== undefined)) return false
  // The broker can read sources of variables for a warm pod, except files and limits of a container.
  if (env.some(({ valueFrom }) => valueFrom?.fileKeyRef !== undefined || valueFrom?.resourceFieldRef !== undefined))
    return false
  const pod = member(member(member(template, 'spec'), 'podTemplate'), 'spec')
  const [container]: readonly unknown[] = Array.isArray(pod.containers) ? pod.containers : []
  return textOf(pod, 'runtimeClassName') === runtimeClassName && textOf(Object(container), 'image') === agent.image
}

/** The broker knows where a warm pod runs; for a dedicated pod there is no proof when its token is minted. */
function proofProblem({ requireProof = [], attested }: TrustTierSpec, mode: Mode): Hindrance | null {
  if (attested === true) return null
  const unmet = requireProof.find((check) => mode === 'direct' || check !== 'kubernetes')
  if (unmet === undefined) return null
  const why = mode === 'direct' ? 'only pods of a warm pool prove where they run' : 'no pod of this version brings it'
  return { reason: 'ProofRequired', message: `requireProof ${unmet}: ${why}` }
}
