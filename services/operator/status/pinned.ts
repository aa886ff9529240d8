import type { Resource } from '@plat/resources'
import type { Finding } from './conditions.ts'

/** The gateway's report about the tools of one server. */
export interface PinReport {
  /** `<namespace>/<name>`. */
  readonly id: string
  /** RFC 3339; null: its tools have not been listed since the gateway started. */
  readonly lastSeen: string | null
  readonly observedTools: number
  /** Sorted, at most 64. */
  readonly driftedTools: readonly string[]
  readonly unpinnedTools: number
}

type ServerStatus = NonNullable<Resource<'MCPServer'>['status']>
type Observed = Pick<ServerStatus, 'driftedTools' | 'lastSeen' | 'observedTools'>

/** A report that says nothing new is written down after this time at the latest, in milliseconds. */
const LAST_SEEN_STEP_MS = 600_000

/** Status members from a report. If only `lastSeen` changes, the status is updated every ten minutes, not with every call. */
export function observed(before: ServerStatus, report: PinReport | null): Observed {
  const { driftedTools, lastSeen, observedTools } = before
  const pinned = {
    ...(driftedTools !== undefined && { driftedTools }),
    ...(lastSeen !== undefined && { lastSeen }),
    ...(observedTools !== undefined && { observedTools }),
  }
  if (report === null || report.lastSeen === null) return pinned
  const fresh = {
    driftedTools: [...report.driftedTools],
    lastSeen: report.lastSeen,
    observedTools: report.observedTools,
  }
  const same = driftedTools?.join('\n') === report.driftedTools.join('\n') && observedTools === report.observedTools
  const older = lastSeen === undefined ? Number.POSITIVE_INFINITY : Date.parse(report.lastSeen) - Date.parse(lastSeen)
  return same && older < LAST_SEEN_STEP_MS ? pinned : fresh
}

/**
 * The condition `Pinned` (docs/spec/crds.md, "States and transitions"): true when every observed tool matches a pin, false when one
 * differs from all of them. Null: nothing is known that was not known before.
 */
export function pinnedFinding(report: PinReport | null, off: boolean): Finding | null {
  const finding = (status: Finding['status'], reason: string, message: string): Finding => ({
    type: 'Pinned',
    status,
    reason,
    message,
  })
  if (off) return finding('Unknown', 'PinsOff', 'toolPins.mode is off')
  if (report === null || report.lastSeen === null) return null
  const { driftedTools, unpinnedTools, observedTools } = report
  if (driftedTools.length > 0) {
    return finding('False', 'ToolsDrifted', `differ from every pin: ${driftedTools.join(', ')}`)
  }
  if (unpinnedTools > 0) return finding('Unknown', 'ToolsUnpinned', `${unpinnedTools} of ${observedTools} have no pin`)
  return finding('True', 'ToolsPinned', `${observedTools} tools are as they are pinned`)
}
