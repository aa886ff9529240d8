import type { Clock, SharedPool } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { OverloadState } from '@plat/process'
import type { Denial, Identity, RequestContext, Snapshot, Snapshots } from '../../call/index.ts'
import type { LiveCalls } from '../live.ts'
import type { Matrix } from '../matrix.ts'
import type { RunnerLog, RunnerMetrics } from '../metrics.ts'
import type { AnyReview, AnyStage } from '../stage.ts'
import type { CallObserver, ClosingParts } from './closing.ts'
import type { Prices } from './record.ts'

export interface RunnerOptions {
  /** Made by `stages([...])`, in the order of the matrix. */
  readonly stages: readonly AnyStage[]
  readonly reviews: readonly AnyReview[]
  readonly matrix: Matrix
  /** Authenticates a request from its head, before its body is read. */
  readonly authenticate: (arrival: RequestContext) => Identity | Denial | Promise<Identity | Denial>
  readonly ledgers: Ledgers
  readonly auditFailurePolicy: 'open' | 'closed'
  readonly live: LiveCalls
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly metrics: RunnerMetrics
  readonly log: RunnerLog
  /** While active, every call that does not end work is refused before authentication. Absent: never. */
  readonly overload?: Pick<OverloadState, 'active'>
  /** Counts the bytes of bodies in memory. Absent: they are not counted. */
  readonly bytes?: SharedPool
  /** Returns the revision of the policies of a snapshot, which every record contains. */
  readonly policyRevision?: (snapshot: Snapshot) => string
  /** Returns the prices of a snapshot, for the records of calls with a cost. */
  readonly prices?: (snapshot: Snapshot) => Prices
  /** Estimates the energy of a model call for its record. Absent: records have no estimate. */
  readonly estimate?: ClosingParts['estimate']
  /** Notified in this order when a call has ended. */
  readonly observers?: readonly CallObserver[]
}
