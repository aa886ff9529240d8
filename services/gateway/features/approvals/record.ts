import type { Rec } from '@plat/ledger'
import type { Approval, ApprovalEvent } from './events.ts'
import type { Quorum } from './quorum/quorum.ts'

/** The `approval` record of an event; null for events that say nothing new about who asked, decided or used. */
export function approvalRecord(event: ApprovalEvent, { question, votes }: Approval): Rec | null {
  if (event.t === 'attached' || event.t === 'detached' || event.t === 'snapshot') return null
  // Where one vote decides, the verdict says it all.
  if (event.t === 'vote' && !takesSeveral(question.quorum)) return null
  const { namespace, agent, session, user, server, tool, method, policy, rule, argsSha256, argsBytes } = question
  const vote = event.t === 'vote' ? event : event.t === 'granted' || event.t === 'denied' ? votes.at(-1) : undefined
  const reason = event.t === 'unconfirmed' ? event.reason : (vote?.reason ?? '')
  // Absent beats null in the ledger.
  return {
    kind: 'approval',
    approval: question.id,
    event: event.t,
    call: 'call' in event ? event.call : undefined,
    session,
    namespace,
    agent,
    user: user ?? undefined,
    server,
    tool: tool ?? undefined,
    method,
    policy: policy ?? undefined,
    rule: rule ?? undefined,
    argsSha256: argsSha256 ?? undefined,
    argsBytes,
    policyRevision: question.policyRevision,
    by: vote?.by,
    via: vote?.via,
    verdict: event.t === 'vote' ? event.verdict : undefined,
    reason: reason === '' ? undefined : reason,
  }
}

function takesSeveral({ minApprovers, userConfirmation }: Quorum): boolean {
  return minApprovers > 1 || userConfirmation !== undefined
}
