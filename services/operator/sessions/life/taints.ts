import { isObject, parseStrict } from '@plat/core'
import type { Members } from '@plat/kubernetes'
import { isTerminal, type Resource } from '@plat/resources'
import type { Hindrance } from './hindrance.ts'
import { timeOf } from './times.ts'

type Session = Resource<'AgentSession'>

/** Annotation in which the gateway reports the taint labels of a session: JSON of `at` (RFC 3339), `agent` and `labels`. */
export const TAINTS = 'plat.dev/taints'
/** How far the clocks of gateway and API server may differ, in milliseconds. */
const SKEW_MS = 5_000
/** When a fork that waits for the labels of its parent is looked at again, in milliseconds. */
const RETRY_MS = 10_000

interface Report {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly agent: string
  readonly labels: readonly string[]
}

/**
 * Taint labels that a session begins with. A fork gets those that its parent had when the fork was created, and when the workspace was
 * copied (`copiedAt`, milliseconds since the epoch; null if it was not): it waits for a report that is newer than both, because labels
 * that were added since an older one would be lost.
 */
export function inheritedTaints(
  { metadata, spec, status }: Session,
  parent: Session | undefined,
  copiedAt: number | null,
): readonly string[] | Hindrance {
  if (spec.fork?.inheritTaints !== true) return []
  if (status?.inheritedTaints !== undefined) return status.inheritedTaints
  const name = spec.fork.parent ?? ''
  if (parent === undefined) return unknown(`there is no session ${name} to inherit the taint labels of`)
  const inherits = parent.spec.fork?.inheritTaints === true
  const report = reportOf(parent.metadata.annotations?.[TAINTS])
  const createdAt = timeOf(metadata.creationTimestamp)
  const since = createdAt === null ? null : Math.max(createdAt, copiedAt ?? 0)
  const isKnown = !inherits || parent.status?.inheritedTaints !== undefined
  if (isKnown && report !== null && since !== null && isReportOf(parent, report, since)) {
    return [...new Set([...(inherits ? (parent.status?.inheritedTaints ?? []) : []), ...report.labels])]
  }
  const next = isTerminal(parent.status?.phase)
    ? 'it has ended, so that none comes'
    : 'one comes with its next call through a gateway with activity.enabled'
  return unknown(
    `the gateway has not reported the taint labels of session ${name} since this one was created${copiedAt === null ? '' : ' and the workspace was copied'}: ${next}`,
  )
}

function isReportOf({ spec }: Session, { at, agent }: Report, since: number): boolean {
  return agent === spec.agentRef && at >= since + SKEW_MS
}

function unknown(message: string): Hindrance {
  return { reason: 'TaintsUnknown', message, retryAfterMs: RETRY_MS }
}

function reportOf(text: string | undefined): Report | null {
  const { at, agent, labels } = membersOf(text ?? '')
  const time = typeof at === 'string' ? timeOf(at) : null
  if (time === null || typeof agent !== 'string' || !Array.isArray(labels)) return null
  return labels.every((label) => typeof label === 'string') ? { at: time, agent, labels } : null
}

function membersOf(text: string): Members {
  try {
    const value = parseStrict(Buffer.from(text))
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
