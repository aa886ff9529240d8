import { rfc3339 } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { isRepeatable, progress } from './quorum/ballot.ts'
import { type Approval, previewSchema, STATES } from './store/events.ts'

const nullable = Type.Union([Type.String(), Type.Null()])

/** An approval in the admin API. Times are RFC 3339. */
export const viewSchema = Type.Object({
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
  /** Path of the whole arguments, if the preview is truncated and they are stored. Absent in responses of older versions. */
  wholeArguments: Type.Optional(nullable),
  quorum: Type.Object({
    minApprovers: Type.Integer(),
    approverGroups: Type.Array(Type.String()),
    /** Confirmation by the user of the session; `code` identifies the prompt. Null: not required. */
    userConfirmation: Type.Union([
      Type.Object({ state: Type.Enum(['waiting', 'asked', 'confirmed', 'waived']), code: nullable }),
      Type.Null(),
    ]),
    /** Votes needed and votes given, including the user's own. */
    needed: Type.Integer(),
    given: Type.Integer(),
    votes: Type.Array(
      Type.Object({
        by: Type.String(),
        verdict: Type.Enum(['approve', 'deny']),
        reason: Type.String(),
        at: Type.String(),
        via: Type.Optional(Type.String()),
        scope: Type.Optional(Type.Enum(['session'])),
      }),
    ),
  }),
  /** Whether it can be approved for the rest of the session. Absent in responses of older versions. */
  isRepeatable: Type.Optional(Type.Boolean()),
  createdAt: Type.String(),
  expiresAt: Type.String(),
})

export type ApprovalView = Static<typeof viewSchema>

/** Returns whether a response of the admin API is an approval. For its clients. */
export function isApprovalView(value: unknown): value is ApprovalView {
  return Check(viewSchema, value)
}

/** The whole arguments of a pending approval, in the admin API: as approvers may see them. */
export const argumentsSchema = Type.Object({ id: Type.String(), argsSha256: nullable, text: Type.String() })

export type ArgumentsView = Static<typeof argumentsSchema>

/** Returns whether a response of the admin API is the whole arguments of an approval. For its clients. */
export function isArgumentsView(value: unknown): value is ArgumentsView {
  return Check(argumentsSchema, value)
}

/** `whole`: where the whole arguments of approvals are stored. */
export function approvalView(approval: Approval, whole: { has(id: string): boolean }): ApprovalView {
  const { question, state, votes } = approval
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
    wholeArguments: whole.has(id) ? `/v1/approvals/${encodeURIComponent(id)}/arguments` : null,
    quorum: {
      minApprovers: quorum.minApprovers,
      approverGroups: quorum.approverGroups,
      userConfirmation: confirmationView(approval),
      ...progress(approval),
      votes: votes.map(({ person: _, groups: __, ...vote }) => ({ ...vote, at: rfc3339(vote.at) })),
    },
    isRepeatable: isRepeatable(question),
    createdAt: rfc3339(createdAt),
    expiresAt: rfc3339(expiresAt),
  }
}

/** An approval for the rest of a session in the admin API. Times are RFC 3339. */
export const grantSchema = Type.Object({
  id: Type.String({ description: 'The approval that was given for the session.' }),
  namespace: Type.String(),
  agent: Type.String(),
  session: Type.String(),
  user: nullable,
  server: Type.String(),
  tool: Type.String(),
  policy: nullable,
  rule: nullable,
  taints: Type.Array(Type.String(), {
    description: 'Labels of the session at that time: others need an approval again.',
  }),
  newTaints: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Labels that the session has got since. While there is one, each call waits for an approval.',
    }),
  ),
  by: Type.Array(Type.String()),
  createdAt: Type.String(),
  expiresAt: Type.String({ description: 'It ends with the session, and then at the latest.' }),
})

export type GrantView = Static<typeof grantSchema>

/** Returns whether a response of the admin API is an approval for a session. For its clients. */
export function isGrantView(value: unknown): value is GrantView {
  return Check(grantSchema, value)
}

function confirmationView({ question, confirmation }: Approval): ApprovalView['quorum']['userConfirmation'] {
  if (question.quorum.userConfirmation === undefined) return null
  return { state: confirmation?.state ?? 'waiting', code: confirmation?.asked?.code ?? null }
}
