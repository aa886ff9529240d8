import { rfc3339 } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { type Approval, previewSchema, STATES } from './events.ts'

const nullable = Type.Union([Type.String(), Type.Null()])

/** An approval as the admin API shows it. Times are RFC 3339. */
const viewSchema = Type.Object({
  id: Type.String(),
  state: Type.Enum(STATES),
  session: Type.String(),
  namespace: Type.String(),
  agent: Type.String(),
  user: nullable,
  server: Type.String(),
  tool: nullable,
  method: Type.String(),
  policy: nullable,
  rule: nullable,
  reason: Type.String(),
  argsSha256: nullable,
  argsBytes: Type.Integer(),
  preview: previewSchema,
  quorum: Type.Object({
    minApprovers: Type.Integer(),
    approverGroups: Type.Array(Type.String()),
    votes: Type.Array(
      Type.Object({
        by: Type.String(),
        verdict: Type.Enum(['approve', 'deny']),
        reason: Type.String(),
        at: Type.String(),
      }),
    ),
  }),
  createdAt: Type.String(),
  expiresAt: Type.String(),
})

export type ApprovalView = Static<typeof viewSchema>

/** For clients of the admin API: is this answer an approval? */
export function isApprovalView(value: unknown): value is ApprovalView {
  return Check(viewSchema, value)
}

export function approvalView({ question, state, votes }: Approval): ApprovalView {
  const { id, session, namespace, agent, user, server, tool, method, policy, rule, reason } = question
  const { argsSha256, argsBytes, preview, quorum, createdAt, expiresAt } = question
  return {
    id,
    state,
    session,
    namespace,
    agent,
    user,
    server,
    tool,
    method,
    policy,
    rule,
    reason,
    argsSha256,
    argsBytes,
    preview,
    quorum: { ...quorum, votes: votes.map((vote) => ({ ...vote, at: rfc3339(vote.at) })) },
    createdAt: rfc3339(createdAt),
    expiresAt: rfc3339(expiresAt),
  }
}
