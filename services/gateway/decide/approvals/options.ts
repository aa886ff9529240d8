import type { Clock, Ids, PoolBound } from '@plat/core'
import type { Journal } from '@plat/state'
import type { PersonMarks } from '../../admin/index.ts'
import type { DecidedCall } from './decided-call.ts'
import type { RedactAll, WholeOptions } from './question/preview.ts'
import type { Ballot } from './quorum/ballot.ts'
import type { ApprovalRule, QuorumFloor } from './quorum/quorum.ts'
import type { SessionName } from './store/book.ts'
import type { Approval, ApprovalEvent, Question } from './store/events.ts'

export type { RedactAll, WholeOptions } from './question/preview.ts'

export interface ApprovalsOptions {
  readonly journal: Journal<ApprovalEvent>
  readonly clock: Clock
  readonly ids: Ids
  /** Lifetime of a pending approval and of its grant, in milliseconds. */
  readonly timeoutMs: number
  readonly preview: WholeOptions
  /** For previews of arguments that no data-loss prevention profile inspects. */
  readonly redactAll?: RedactAll | undefined
  /** Minimum quorum of every approval. */
  readonly floor: QuorumFloor
  /** Returns every approval rule that applies to the call. */
  readonly approvalRules: (call: DecidedCall) => readonly ApprovalRule[]
  /** Whether users can be prompted to confirm. */
  readonly canPromptUsers: boolean
  /** Whether this person may currently approve anything. When absent, everyone who can decide may approve. */
  readonly mayApprove?: ((who: Pick<Ballot, 'by' | 'groups'>) => boolean) | undefined
  /** Returns the marks that identify the user of a session. */
  readonly personOf: (user: string) => PersonMarks
  /** Whether a session is revoked as a whole. When absent, none is. */
  readonly hasEnded?: ((session: SessionName & { readonly user: string | null }) => boolean) | undefined
  /** Called for each event that the journal holds at start, with the time when it was written. */
  readonly onReplay?: (event: ApprovalEvent, approval: Approval, at: number) => void
  /** Called with each new event, of this replica and of others. */
  readonly onChange?: ((event: ApprovalEvent, approval: Approval) => void) | undefined
  /** Called once for each event that this replica made durable. */
  readonly onEvent: (event: ApprovalEvent, approval: Approval) => void
  /** Called with each new question of this replica whose preview is truncated, and its whole arguments. */
  readonly onTruncated?: (question: Question, whole: string) => void
  /** Called with the number of pending approvals after each change. */
  readonly onPending: (count: number) => void
  /** Called when a question is refused because too many are pending. */
  readonly onRefused?: (bound: PoolBound) => void
  /** Called when the journal cannot be written and no caller waits for the result. */
  readonly onFault: (error: unknown) => void
}
