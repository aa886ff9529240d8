import { AdminError } from '../../admin/index.ts'
import type { ErrorCode } from '../../call/index.ts'
import type { Approvals, RefusedDecision } from './approvals.ts'
import type { Ballot } from './quorum/ballot.ts'
import { type ApprovalView, approvalView } from './view.ts'

/** What a decision is told that does not count. */
const refusals: Readonly<Record<RefusedDecision, readonly [ErrorCode, string]>> = {
  unknown: ['not_found', 'there is no approval with this id'],
  offline: ['offline', 'this edge is disconnected: offline.approvals and offline.localApprovers say who approves now'],
  decided: ['conflict', 'the approval is decided already'],
  voted: ['conflict', 'you have approved this already: somebody else must approve it as well'],
  self: ['forbidden', 'nobody approves what is done for himself'],
  group: ['forbidden', 'this needs an approver of another group (quorum.approverGroups)'],
}

/** Where people's decisions arrive, by whatever way. */
export interface Decisions {
  /** Null: there is no such approval. */
  namespaceOf(id: string): string | null
  /** Answers the approval as it stands then, with what is missing. Throws `AdminError`. */
  decide(id: string, ballot: Ballot): Promise<ApprovalView & { readonly missing: number }>
}

/** `onFault`: the journal could not be written. */
export function createDecisions(approvals: Approvals, onFault: (error: unknown) => void): Decisions {
  return {
    namespaceOf: (id) => approvals.get(id)?.question.namespace ?? null,
    async decide(id, ballot) {
      const decided = await approvals.decide(id, ballot).catch((error: unknown) => {
        onFault(error)
        throw new AdminError('state_unavailable', 'approvals cannot be kept now')
      })
      if ('refused' in decided) {
        const { refused } = decided
        const [code, message] = refusals[refused]
        const state = approvals.get(id)?.state
        throw new AdminError(
          code,
          refused === 'decided' ? `the approval is ${state} already, or its time is over` : message,
        )
      }
      const view = approvalView(decided.approval)
      return { ...view, missing: view.quorum.needed - view.quorum.given }
    },
  }
}
