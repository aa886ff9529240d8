import type { SharedPool } from '@plat/core'
import type { OverloadState } from '@plat/process'
import type { Denial, Identity, RequestContext, Snapshots } from '../../call/index.ts'
import type { Matrix } from '../matrix.ts'
import type { AnyReview, AnyStage } from '../stage.ts'
import type { ClosingOptions } from './closing.ts'
import type { RecorderOptions } from './recorder.ts'

export interface RunnerOptions extends ClosingOptions, RecorderOptions {
  /** Made by `stages([...])`, in the order of the matrix. */
  readonly stages: readonly AnyStage[]
  readonly reviews: readonly AnyReview[]
  readonly matrix: Matrix
  /** Authenticates a request from its head, before its body is read. */
  readonly authenticate: (arrival: RequestContext) => Identity | Denial | Promise<Identity | Denial>
  readonly auditFailurePolicy: 'open' | 'closed'
  readonly snapshots: Snapshots
  /** While active, every call that does not end work is refused before authentication. Absent: never. */
  readonly overload?: Pick<OverloadState, 'active'>
  /** Counts the bytes of bodies in memory. Absent: they are not counted. */
  readonly bytes?: SharedPool
}
