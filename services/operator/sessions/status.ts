import { canonicalJson, rfc3339 } from '@plat/core'
import { isTerminal, type Resource, type StatusOf } from '@plat/resources'
import { type Finding, withFindings } from '../status/conditions.ts'
import type { Plan } from './life/admission.ts'
import type { Decision, SandboxView } from './life/phase.ts'
import type { Minted } from './mint.ts'
import { ATTESTATION_URL, RELEASE_ID } from './pod/environment.ts'

type Session = Resource<'AgentSession'>
type Status = StatusOf<'AgentSession'>

export interface StatusParts {
  readonly session: Session
  readonly decision: Decision
  readonly now: number
  /** Of a session that begins. */
  readonly plan: Plan | null
  readonly endsAt: number | null
  readonly sandbox: SandboxView | null
  readonly lastActivity: number | null
  /** A token that was minted since the status before. */
  readonly minted: Minted | null
  /** Release of an attested session; null: it has none, or releases are not the operator's. */
  readonly release: ReleaseVariables | null
}

/** Variables by which the workload of an attested session redeems its tokens. */
export interface ReleaseVariables {
  readonly [RELEASE_ID]: string
  readonly [ATTESTATION_URL]: string
}

/** The operator's part of a session's status: what the broker writes into it (`podRef`, the token of a claimed pod) is the broker's. */
export function statusOf(parts: StatusParts): Status {
  const { session, decision, now, plan, endsAt, sandbox, lastActivity, minted, release } = parts
  const before = ownPart(session)
  const { generation } = session.metadata
  const startedAt = decision.begins ? rfc3339(now) : before.startedAt
  const runs = decision.phase === 'Running' && sandbox !== null
  return {
    ...before,
    phase: decision.phase,
    ...(plan !== null && decision.begins && { mode: plan.mode, scopes: [...plan.scopes] }),
    ...(plan !== null && decision.begins && plan.forkedFrom.length > 0 && { forkedFrom: [...plan.forkedFrom] }),
    ...(plan !== null && decision.begins && inherits(session) && { inheritedTaints: [...plan.inheritedTaints] }),
    ...(startedAt !== undefined && { startedAt }),
    ...(startedAt !== undefined && endsAt !== null && { expiresAt: rfc3339(endsAt) }),
    ...(runs && { sandboxRef: { name: sandbox.name, uid: sandbox.uid } }),
    ...(lastActivity !== null && { lastActivity: rfc3339(lastActivity) }),
    ...(minted !== null && { spiffeId: minted.spiffeId, jti: minted.jti }),
    ...(release !== null && { env: { ...release } }),
    conditions: withFindings(before.conditions ?? [], findingsOf(before, decision), { generation, now: rfc3339(now) }),
    observedGeneration: generation,
  }
}

/** Says the status something that the one before does not? */
export function isNews(session: Session, status: Status): boolean {
  const { env: before = {} } = session.status ?? {}
  const { env = {}, ...own } = status
  // Others can write further variables.
  const isOther = [RELEASE_ID, ATTESTATION_URL].some((name) => env[name] !== before[name])
  return isOther || canonicalJson(ownPart(session)) !== canonicalJson(own)
}

function inherits({ spec }: Session): boolean {
  return spec.fork?.inheritTaints === true
}

function ownPart({ status = {} }: Session): Status {
  const { podRef: _, env: __, spiffeId, jti, ...own } = status
  const minted = { ...(spiffeId !== undefined && { spiffeId }), ...(jti !== undefined && { jti }) }
  return status.mode === 'direct' ? { ...own, ...minted } : own
}

function findingsOf(before: Status, { phase, reason, message }: Decision): Finding[] {
  const ready = phase === 'Running' && reason === 'Running'
  const findings: Finding[] = [{ type: 'Ready', status: ready ? 'True' : 'False', reason, message }]
  const type = 'QuotaExceeded'
  if (reason === type) findings.push({ type, status: 'True', reason: 'MaxConcurrentSessions', message })
  else if (before.conditions?.some((condition) => condition.type === type) === true) {
    findings.push({ type, status: 'False', reason: isTerminal(phase) ? 'Ended' : 'Admitted', message: '' })
  }
  return findings
}
