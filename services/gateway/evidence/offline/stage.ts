import { glob } from '@plat/core'
import { type Call, type Denial, deny, isNamed } from '../../call/index.ts'
import { admitted, type Stage, stage } from '../../pipeline/stage.ts'

/** Why an edge refuses a call (`plat_gateway_offline_denials_total`). */
export const RULES = ['spool-full', 'revocation-stale', 'approval-offline'] as const
export type OfflineRule = (typeof RULES)[number]

/** State of an edge. Updated in place once per second; calls only read it. */
export interface Standing {
  /** No other member is set: all that most calls read. */
  calm: boolean
  /** The spool has no room for further records. */
  full: boolean
  /** The revocation list is older than `offline.maxRevocationStalenessSeconds`. */
  stale: boolean
  /** No approval is possible while the edge is disconnected. */
  unapprovable: boolean
}

/** State of gateways that are not an edge. */
export const AT_EASE: Readonly<Standing> = { calm: true, full: false, stale: false, unapprovable: false }

export interface OfflineStageOptions {
  readonly standing: Readonly<Standing>
  /** `offline.highRiskTools`: `server/tool` globs; empty for every tool. */
  readonly highRiskTools: readonly string[]
  readonly onDenied: (rule: OfflineRule) => void
}

type Known = 'target' | 'pin' | 'decision'

/** The stage `offline`: denials of a disconnected edge. */
export function createOfflineStage({
  standing,
  highRiskTools,
  onDenied,
}: OfflineStageOptions): Stage<'offline', Known, never> {
  const globs = highRiskTools.map(glob)
  const isHighRisk = (tool: string) => globs.length === 0 || globs.some((matches) => matches(tool))
  const broken = (call: Call<Known>): OfflineRule | null => {
    const { target, pin, decision } = call.facts
    const tool = target.kind === 'model' ? null : target.tool
    if (tool !== null && standing.full) return 'spool-full'
    if (tool !== null && standing.stale && isNamed(target, (name) => isHighRisk(`${name}/${tool}`)))
      return 'revocation-stale'
    // A call in its second pass has been approved already.
    const asks =
      decision.action === 'require_approval' || pin?.approve === true || Boolean(target.requirements?.approval)
    return standing.unapprovable && asks && call.pass === 1 ? 'approval-offline' : null
  }
  return stage({
    name: 'offline',
    needs: ['target', 'pin', 'decision'],
    gives: [],
    skipped: {},
    admit(call) {
      if (standing.calm) return admitted
      const rule = broken(call)
      if (rule === null) return admitted
      onDenied(rule)
      return DENIALS[rule]
    },
  })
}

const DENIALS: Readonly<Record<OfflineRule, Denial>> = {
  'spool-full': deny(
    'offline',
    'the spool of this edge is full: no tool is called until a collector accepts its records',
  ),
  'revocation-stale': deny('offline', 'this edge is disconnected, and its revocation list is too old for this tool'),
  'approval-offline': deny(
    'offline',
    'this edge is disconnected, so the approval that this call needs is not possible',
  ),
}
