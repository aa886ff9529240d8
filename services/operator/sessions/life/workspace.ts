import type { AgentSpec, Resource } from '@plat/resources'
import type { Hindrance } from './hindrance.ts'
import { timeOf } from './times.ts'

type Session = Resource<'AgentSession'>

/** When a fork that waits for its parent or for its snapshot is looked at again although nothing changed, in milliseconds. */
const RETRY_MS = 10_000
/** Longest part of a storage driver's message that a condition repeats. */
const MAX_ERROR_CHARS = 500

/** The VolumeSnapshot that the workspace of a fork begins with, as the cluster has it. */
export interface SnapshotView {
  readonly name: string
  readonly ready: boolean
  /** When the storage driver cut it (RFC 3339); empty: it has not said. */
  readonly takenAt: string
  /** Quantity: the least size of a volume that is restored from it; empty: the driver has not said. */
  readonly restoreSize: string
  /** Why it could not be taken yet; empty: nothing failed. */
  readonly error: string
}

export interface WorkspaceParts {
  readonly session: Session
  readonly agent: AgentSpec
  /** The session that `fork.parent` names; undefined when there is none. */
  readonly parent: Session | undefined
  /** PersistentVolumeClaim of the parent's workspace; null: its Sandbox has none, or there is no Sandbox. */
  readonly parentClaim: string | null
  readonly snapshot: SnapshotView | null
  /** Does the cluster know VolumeSnapshots? */
  readonly snapshotsServed: boolean
}

/** Whether the workspace of a session begins as a copy of its parent's. */
export function isForkedWorkspace({ spec }: Session, { workspace }: AgentSpec): boolean {
  return spec.fork?.parent !== undefined && workspace?.volumeSnapshotClassName !== undefined
}

/** Reason why a session cannot begin with its parent's workspace yet; null: it can, or it begins with an empty one. */
export function workspaceHindrance(parts: WorkspaceParts): Hindrance | null {
  const { session, agent, snapshot, snapshotsServed } = parts
  if (!isForkedWorkspace(session, agent) || session.status?.startedAt !== undefined) return null
  if (!snapshotsServed) {
    return waiting(
      'SnapshotsNotServed',
      'the cluster does not know VolumeSnapshots: install external-snapshotter, or let the operator list them',
    )
  }
  if (snapshot === null) return parentHindrance(parts)
  // Labels are inherited from after the copy: without its time they could be older than its files.
  if (snapshot.ready && timeOf(snapshot.takenAt) !== null) return null
  if (snapshot.error === '')
    return waiting('SnapshotNotReady', `VolumeSnapshot ${snapshot.name} of its parent’s workspace is not ready yet`)
  const why = snapshot.error.slice(0, MAX_ERROR_CHARS)
  return waiting('SnapshotFailed', `VolumeSnapshot ${snapshot.name} of its parent’s workspace: ${why}`)
}

/** Why no snapshot can be taken of the parent's workspace, or the request to take it. */
function parentHindrance({ session, agent, parent, parentClaim }: WorkspaceParts): Hindrance {
  const name = session.spec.fork?.parent ?? ''
  if (parent === undefined) return waiting('ParentNotFound', `there is no session ${name} to copy the workspace of`)
  if (parent.spec.agentRef !== session.spec.agentRef || parent.spec.user !== session.spec.user) {
    const message = `session ${name} has another Agent or user: its workspace is copied only for forks with the same ones`
    return { reason: 'ParentDiffers', message }
  }
  if (parentClaim === null) {
    return waiting('ParentHasNoWorkspace', `session ${name} has no volume to copy: it has not run, or has ended`)
  }
  const className = agent.workspace?.volumeSnapshotClassName ?? ''
  const message = `a VolumeSnapshot of the workspace of session ${name} is being taken`
  return { ...waiting('SnapshotNotReady', message), snapshot: { volumeClaim: parentClaim, className } }
}

function waiting(reason: string, message: string): Hindrance {
  return { reason, message, retryAfterMs: RETRY_MS }
}
