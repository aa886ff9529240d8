import type { Rec } from '@plat/ledger'
import type { Approval, ApprovalEvent } from './events.ts'

/** The `approval` record of an event; null for events that say nothing new about who asked, decided or used. */
export function approvalRecord(event: ApprovalEvent, { question, votes }: Approval): Rec | null {
  if (event.t === 'vote' || event.t === 'attached' || event.t === 'detached' || event.t === 'snapshot') return null
  const { namespace, agent, session, user, server, tool, method, policy, rule, argsSha256, argsBytes } = question
  const vote = event.t === 'granted' || event.t === 'denied' ? votes.at(-1) : undefined
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
    reason: vote === undefined || vote.reason === '' ? undefined : vote.reason,
  }
}
