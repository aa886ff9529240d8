import { isObject, type PoolCaller } from '@plat/core'
import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../../../call/index.ts'

const closed = { additionalProperties: false } as const
const orNull = <T extends ReturnType<typeof Type.String>>(of: T) => Type.Union([of, Type.Null()])
const event = <const T extends string, P extends Parameters<typeof Type.Object>[0]>(t: T, members: P) =>
  Type.Object({ t: Type.Literal(t), ...members }, closed)

/** The arguments as approvers see them; null in mode `none`. */
export const previewSchema = Type.Union([
  Type.Object(
    { mode: Type.Enum(['hash', 'redacted', 'full']), text: Type.String(), truncated: Type.Boolean() },
    closed,
  ),
  Type.Null(),
])

/** The immutable part of an approval. Times are milliseconds since the epoch. */
const questionSchema = Type.Object(
  {
    id: Type.String(),
    digest: Type.String(),
    tenant: Type.String(),
    namespace: Type.String(),
    agent: Type.String(),
    session: Type.String(),
    user: orNull(Type.String()),
    target: Type.String(),
    server: Type.String(),
    tool: orNull(Type.String()),
    method: Type.String(),
    argsSha256: orNull(Type.String()),
    argsBytes: Type.Integer(),
    preview: previewSchema,
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    reason: Type.String(),
    quorum: Type.Object(
      {
        minApprovers: Type.Integer(),
        approverGroups: Type.Array(Type.String()),
        userConfirmation: Type.Optional(Type.Enum(['ciba'])),
      },
      closed,
    ),
    policyRevision: Type.String(),
    createdAt: Type.Number(),
    expiresAt: Type.Number(),
  },
  closed,
)

/** The vote of one person. */
export const voteSchema = Type.Object(
  {
    by: Type.String(),
    verdict: Type.Enum(['approve', 'deny']),
    reason: Type.String(),
    at: Type.Number(),
    /** Marks that identify the person, and the person's groups at that time. Absent in votes of older versions. */
    person: Type.Optional(Type.Array(Type.String())),
    groups: Type.Optional(Type.Array(Type.String())),
    /** `ciba`: the user of the session; `notifier/<name>`: a callback. Absent: the admin API. */
    via: Type.Optional(Type.String()),
    /** `session`: an approval for the rest of the session. Absent: for one call. */
    scope: Type.Optional(Type.Enum(['session'])),
  },
  closed,
)

/** One CIBA prompt to the user. */
const promptSchema = Type.Object(
  {
    /** `auth_req_id`. Of no use without the client's secret. */
    requestId: Type.String(),
    /** Code shown to the user to identify the question. */
    code: Type.String(),
    /** When the provider's request expires. */
    until: Type.Number(),
    intervalMs: Type.Number(),
  },
  closed,
)

/** States of an approval. `approved` is an unused grant. */
export const STATES = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'used'] as const

const approvalSchema = Type.Object(
  {
    question: questionSchema,
    state: Type.Enum(STATES),
    votes: Type.Array(voteSchema),
    /** State of the user's confirmation; `waived`: the user could not be prompted. Absent before the first prompt. */
    confirmation: Type.Optional(
      Type.Object(
        { state: Type.Enum(['asked', 'confirmed', 'waived']), asked: Type.Union([promptSchema, Type.Null()]) },
        closed,
      ),
    ),
    /** Id of the call that used the grant, or that learned of the denial. */
    usedBy: orNull(Type.String()),
  },
  closed,
)

const eventSchema = Type.Union([
  event('created', { question: questionSchema, call: Type.String() }),
  event('asked', promptSchema.properties),
  event('unconfirmed', { reason: Type.String() }),
  event('vote', voteSchema.properties),
  event('granted', {}),
  event('denied', {}),
  event('expired', {}),
  event('cancelled', {}),
  event('detached', {}),
  event('attached', { call: Type.String() }),
  event('used', { call: Type.String() }),
  event('returned', { call: Type.String() }),
  event('snapshot', { approval: approvalSchema }),
])

/** The arguments as approvers see them. */
export type Preview = Static<typeof previewSchema>
/** The immutable part of an approval. */
export type Question = Static<typeof questionSchema>
/** Current state of an approval. */
export type Approval = Static<typeof approvalSchema>
export type Vote = Static<typeof voteSchema>
/** A prompt to the user that the session acts for. */
export type UserPrompt = Static<typeof promptSchema>

/** An event of one approval. Its journal key is the approval's id. */
export type ApprovalEvent = Static<typeof eventSchema>

/**
 * Decodes a journal event. Throws for one that this version does not know: decisions need the whole history. A vote of a newer version
 * is read without its unknown members and with its voter known by name only, so it fills a quorum of one.
 */
export function decodeEvent(value: unknown): ApprovalEvent {
  if (Check(eventSchema, value)) return value
  if (isObject(value) && value.t === 'vote') {
    const { by, verdict, reason, at, via } = value
    const vote = { t: 'vote', by, verdict, reason, at, ...(via !== undefined && { via }) }
    if (Check(eventSchema, vote)) return vote
  }
  throw unknownEvent('an approval event', value)
}

/** Returns the caller of events: agent and session of a new approval, otherwise the approval. */
export function requesterOf(id: string, [event]: readonly ApprovalEvent[]): PoolCaller {
  if (event?.t !== 'created') return id
  const agent = agentOf(event.question)
  return [agent, `${agent}/${event.question.session}`]
}

/** The journal of approvals. */
export function approvalsJournal({ approvalStorePath: path }: StoredBeside): JournalSpec<ApprovalEvent> {
  return { name: 'approvals', path, decode: decodeEvent, callerOf: requesterOf }
}

/** Where approvals are stored. */
export interface StoredBeside {
  readonly approvalStorePath: string
}
