import { isTerminal, type Resource } from '@plat/resources'
import type { Hindrance, SnapshotRequest } from './hindrance.ts'
import { timeOf } from './times.ts'

export type Phase = NonNullable<NonNullable<Resource<'AgentSession'>['status']>['phase']>

/** Observed state of the Sandbox of a session. */
export interface SandboxView {
  readonly name: string
  readonly uid: string
  readonly ready: boolean
  /** How its pod has ended; null: it has not. */
  readonly finished: 'Succeeded' | 'Failed' | null
}

/** Everything that decides where a session is. Times are milliseconds since the epoch. */
export interface SessionFacts {
  readonly session: Resource<'AgentSession'>
  readonly now: number
  /** Why it cannot begin; null: it can. */
  readonly hindrance: Hindrance | null
  /** Is there room for it beside the other sessions of its Agent? */
  readonly room: boolean
  /** By an AgentRevocation that is in force. */
  readonly revoked: 'revoke' | 'suspend' | null
  readonly sandbox: SandboxView | null
  /** When it ends, were it to begin when it did, or now; null: nothing limits it. */
  readonly endsAt: number | null
  readonly idleMs: number | null
  /** Time of the agent's last call; null if unknown. */
  readonly lastActivity: number | null
}

/** Where a session is, what of its Sandbox shall be there, and when to look again (null: when something changes). */
export interface Decision {
  readonly phase: Phase
  readonly reason: string
  readonly message: string
  readonly sandbox: 'none' | 'running' | 'suspended'
  readonly begins: boolean
  /** A VolumeSnapshot that is to be taken while it waits. */
  readonly copies?: SnapshotRequest
  readonly wakeAt: number | null
}

/** One step of a session, from what is known now (docs/spec/crds.md, "States and transitions"). */
export function decide(facts: SessionFacts): Decision {
  const { session, now, endsAt, revoked } = facts
  const { phase = 'Pending', startedAt } = session.status ?? {}
  if (isTerminal(phase)) return ended(phase, readyReason(session), readyMessage(session))
  if (session.spec.cancel === true) return ended('Cancelled', 'Cancelled', 'by spec.cancel')
  if (revoked === 'revoke') return ended('Revoked', 'Revoked', 'by an AgentRevocation')
  if (startedAt === undefined) return beginning(facts)
  if (endsAt !== null && endsAt <= now) return ended('Expired', 'Expired', 'its time is over')
  const finished = facts.sandbox?.finished ?? null
  if (finished !== null) return ended(finished, `Pod${finished}`, 'its pod has ended')
  const why = suspension(facts)
  if (why !== null) {
    return { phase: 'Suspended', ...why, sandbox: 'suspended', begins: false, wakeAt: endsAt }
  }
  return going(facts, phase)
}

/** `waiting` is Pending: nothing of it is there. */
function beginning({ session, now, hindrance, room, revoked, endsAt }: SessionFacts): Decision {
  const waiting = (reason: string, message: string): Decision => ({
    ...{ phase: 'Pending', reason, message, sandbox: 'none', begins: false, wakeAt: null },
  })
  if (session.spec.suspend === true) return waiting('Suspended', 'by spec.suspend')
  if (revoked === 'suspend') return waiting('Suspended', 'by an AgentRevocation')
  if (hindrance !== null) {
    const { reason, message, retryAfterMs, snapshot } = hindrance
    const wakeAt = retryAfterMs === undefined ? null : now + retryAfterMs
    return { ...waiting(reason, message), wakeAt, ...(snapshot !== undefined && { copies: snapshot }) }
  }
  if (!room) return waiting('QuotaExceeded', 'the Agent has as many sessions as maxConcurrentSessions allows')
  return preparing('the Sandbox is being made', true, endsAt)
}

function preparing(message: string, begins: boolean, wakeAt: number | null): Decision {
  return { phase: 'Preparing', reason: 'Preparing', message, sandbox: 'running', begins, wakeAt }
}

function going({ session, sandbox, endsAt, idleMs, lastActivity }: SessionFacts, phase: Phase): Decision {
  const idleAt = idleMs === null || lastActivity === null ? null : lastSign(session, lastActivity) + idleMs
  const wakeAt = earliest(endsAt, idleAt)
  const runs = { phase: 'Running', sandbox: 'running', begins: false, wakeAt } as const
  if (sandbox?.ready === true) return { ...runs, reason: 'Running', message: '' }
  // A pod that is made anew, or not ready for a while, does not undo that the session runs.
  if (phase === 'Running') return { ...runs, reason: 'SandboxNotReady', message: 'the Sandbox is not ready' }
  return preparing(sandbox === null ? 'the Sandbox is being made' : 'the Sandbox is not ready yet', false, endsAt)
}

/** Why the session is to be suspended; null: it is not. */
function suspension(facts: SessionFacts): { readonly reason: string; readonly message: string } | null {
  const { session, revoked, now, idleMs, lastActivity } = facts
  if (session.spec.suspend === true) return { reason: 'Suspended', message: 'by spec.suspend' }
  if (revoked === 'suspend') return { reason: 'Suspended', message: 'by an AgentRevocation' }
  const idle = { reason: 'Idle', message: 'without activity for idleTimeout; a newer activity resumes it' }
  if (session.status?.phase === 'Suspended' && readyReason(session) === 'Idle') {
    // It sleeps until a call needs it.
    return (lastActivity ?? 0) > readySince(session) ? null : idle
  }
  // Without reports of activity a session that works looks like one that does not.
  if (session.status?.phase !== 'Running' || idleMs === null || lastActivity === null) return null
  return lastSign(session, lastActivity) + idleMs <= now ? idle : null
}

/** Whether a running session has just started or was active since. */
function lastSign(session: Resource<'AgentSession'>, lastActivity: number): number {
  const started = timeOf(session.status?.startedAt) ?? 0
  return Math.max(started, readySince(session), lastActivity)
}

function readyOf({ status }: Resource<'AgentSession'>) {
  return status?.conditions?.find(({ type }) => type === 'Ready')
}

function readyReason(session: Resource<'AgentSession'>): string {
  return readyOf(session)?.reason ?? 'Ended'
}

function readyMessage(session: Resource<'AgentSession'>): string {
  return readyOf(session)?.message ?? ''
}

/** When the condition Ready last changed. */
function readySince(session: Resource<'AgentSession'>): number {
  return timeOf(readyOf(session)?.lastTransitionTime) ?? 0
}

function ended(phase: Phase, reason: string, message: string): Decision {
  return { phase, reason, message, sandbox: 'none', begins: false, wakeAt: null }
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
