import { AdminError } from '../../admin/index.ts'
import type { ErrorCode } from '../../call/index.ts'
import type { Approvals, RefusedDecision } from './approvals.ts'
import type { Ballot } from './quorum/ballot.ts'
import { type ApprovalView, approvalView } from './view.ts'

const refusals: Readonly<Record<RefusedDecision, readonly [ErrorCode, string]>> = {
  unknown: ['not_found', 'there is no approval with this id'],
  offline: ['offline', 'this edge is disconnected: offline.approvals and offline.localApprovers say who approves now'],
  decided: ['conflict', 'the approval is decided already'],
  voted: ['conflict', 'you have approved this already: another approver is needed'],
  self: ['forbidden', 'you cannot approve a call that is made for you'],
  unseen: [
    'conflict',
    'its arguments are truncated (approvalPreview.maxBytes): state argsSha256, the SHA-256 of the whole arguments',
  ],
  once: [
    'conflict',
    'this can be approved for one call only: a session needs a rule for a tool, without userConfirmation and with its definition unchanged',
  ],
  group: ['forbidden', 'this needs an approver of another group (quorum.approverGroups)'],
}

/** Receives decisions, whichever way they arrive. */
export interface Decisions {
  /** Returns null if there is no such approval. */
  placeOf(id: string): { readonly namespace: string; readonly tenant: string } | null
  /** Returns the approval after the decision and the number of missing votes. Throws `AdminError`. */
  decide(id: string, ballot: Ballot): Promise<ApprovalView & { readonly missing: number }>
}

/** `onFault` is called when the journal cannot be written. */
export function createDecisions(
  approvals: Approvals,
  whole: { has(id: string): boolean },
  onFault: (error: unknown) => void,
): Decisions {
  return {
    placeOf: (id) => approvals.get(id)?.question ?? null,
    async decide(id, ballot) {
      const decided = await approvals.decide(id, ballot).catch((error: unknown) => {
        onFault(error)
        throw new AdminError('state_unavailable', 'approvals cannot be stored now')
      })
      if ('refused' in decided) {
        const { refused } = decided
        const [code, message] = refusals[refused]
        const state = approvals.get(id)?.state
        throw new AdminError(code, refused === 'decided' ? `the approval is ${state} already, or has expired` : message)
      }
      const view = approvalView(decided.approval, whole)
      return { ...view, missing: view.quorum.needed - view.quorum.given }
    },
  }
}
