import { type ApprovalUse, type Denial, deny, type ErrorCode } from '../../call/index.ts'
import type { Approval, Question, Vote } from './store/events.ts'

export const USED_BY_ANOTHER =
  'another call of this session used the approval, or it was withdrawn; call again to start a new approval'
export const QUORUM_NOT_MET = 'the approvals given no longer meet the quorum; call again to start a new approval'
export const EXPIRED_UNUSED = 'the approval expired before it was used'

/** A refusal with the id of the approval and the approval rule. */
export function refusal(
  code: ErrorCode,
  reason: string,
  { approvalId, question }: { readonly approvalId: string; readonly question: Question | null },
): Denial {
  const { policy = null, rule = null } = question ?? {}
  return deny(code, reason, { policy, rule, data: { approvalId } })
}

/** The approver's reason, for the caller. The approver's name is only in the ledger. */
export function denialReason(votes: readonly Vote[]): string {
  const reason = votes.at(-1)?.reason ?? ''
  return reason === '' ? 'an approver denied this call' : `an approver denied this call: ${reason}`
}

export function useOf({ question, votes }: Approval): ApprovalUse {
  return { approvalId: question.id, by: votes.map((vote) => vote.by) }
}
