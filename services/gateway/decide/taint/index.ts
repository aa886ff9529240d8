import { type Clock, type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { Denial, Identity, SessionRef } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import { sessionKey } from './callees.ts'
import { taintsJournal } from './events.ts'
import { createMark, type MarkOptions } from './mark.ts'
import { createTaintStage } from './stage.ts'
import { Taints } from './taints.ts'

export interface TaintParts {
  readonly config: { readonly taintStorePath: string; readonly taintRetentionSeconds: number }
  readonly journals: Journals
  readonly clears: MarkOptions['clears']
  readonly clock: Clock
  readonly log: Log
  readonly pools?: PoolObservers<'tainted_sessions'>
  readonly metrics: GatewayMetrics
}

/** Taint labels of sessions, for policies. */
export interface TaintFeature {
  readonly stage: Stage<'taints', 'identity' | 'target', 'taints'>
  readonly review: Review<'identity' | 'target' | 'taints'>
  /** Current labels of a caller. */
  labelsOf(identity: Identity): readonly string[]
  /** Current labels of a caller that makes a call, which extends their retention like a tool call. */
  seen(identity: Identity): readonly string[]
  /** Labels of a session without inherited ones. */
  ownLabels(session: SessionRef): readonly string[]
  /** Adds labels to the caller's session. Null: done durably. */
  add(identity: Identity, labels: readonly string[]): null | Denial | Promise<null | Denial>
  /** Labels that a response of an agent, `<ns>/<agent>`, brings to these sessions; null: unknown sessions. */
  labelsFrom(agent: string, callers: readonly SessionRef[] | null): readonly string[]
  /** Lets the caller's session receive new labels of the agent. Null: done durably. */
  listen(identity: Identity, agent: string): null | Denial | Promise<null | Denial>
  /** Resolves when labels added by other replicas are known here; rejects if that fails. Null: there are no other replicas. */
  readonly catchUp: (() => Promise<void>) | null
  close(): Promise<void>
}

/**
 * Taint labels of sessions (docs/spec/crds.md, `toolLabels`) on the journal of `taintStorePath`, in memory when it is empty. Rejects if
 * the journal cannot be read.
 */
export async function createTaint({
  config,
  journals,
  clears,
  clock,
  log,
  pools,
  metrics,
}: TaintParts): Promise<TaintFeature> {
  const events = metrics.counter('plat_gateway_taint_events_total')
  const sessions = metrics.gauge('plat_gateway_tainted_sessions')
  sessions.set({}, 0)
  const journal = await journals.open(taintsJournal(config))
  const taints = await Taints.open({
    journal,
    clock,
    observer: pools?.of('tainted_sessions'),
    retentionMs: config.taintRetentionSeconds * 1000,
    onChange: (op, label) => events.inc({ op, label }),
    onSessions: (count) => sessions.set({}, count),
    onFault: (error) => log.error({ error: reasonOf(error) }, 'taint labels could not be stored'),
  })
  return {
    stage: createTaintStage(taints),
    review: createMark({ taints, clears }),
    labelsOf: (identity) => taints.labelsOf(identity),
    seen: (identity) => taints.seen(identity).labels,
    ownLabels: (session) => taints.ownLabels(session),
    add: (identity, labels) => taints.add(identity, labels),
    labelsFrom: (agent, callers) => taints.labelsFrom(agent, callers?.map(sessionKey) ?? null),
    listen: (identity, agent) => taints.listen(identity, agent),
    catchUp: journals.catchUp,
    async close() {
      taints.close()
      await journal.close()
    },
  }
}
