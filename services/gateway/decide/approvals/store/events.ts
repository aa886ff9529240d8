import { isObject } from '@plat/tokens'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const orNull = <T extends ReturnType<typeof Type.String>>(of: T) => Type.Union([of, Type.Null()])
const event = <const T extends string, P extends Parameters<typeof Type.Object>[0]>(t: T, members: P) =>
  Type.Object({ t: Type.Literal(t), ...members }, closed)

/** What approvers see of the arguments: null in mode `none`. */
export const previewSchema = Type.Union([
  Type.Object(
    { mode: Type.Enum(['hash', 'redacted', 'full']), text: Type.String(), truncated: Type.Boolean() },
    closed,
  ),
  Type.Null(),
])

/** What is asked, and for whom; it never changes. Times are milliseconds since the epoch. */
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

const voteSchema = Type.Object(
  {
    by: Type.String(),
    verdict: Type.Enum(['approve', 'deny']),
    reason: Type.String(),
    at: Type.Number(),
    /** What identifies the person, and the person's groups at that time. Absent: a vote of an older version. */
    person: Type.Optional(Type.Array(Type.String())),
    groups: Type.Optional(Type.Array(Type.String())),
    /** `ciba`: the user that the session acts for; `notifier/<name>`: by a callback. Absent: the admin API. */
    via: Type.Optional(Type.String()),
  },
  closed,
)

/** One question to the user, by CIBA. */
const askedSchema = Type.Object(
  {
    /** `auth_req_id`: whoever has it still needs the client's secret. */
    requestId: Type.String(),
    /** What the user reads, to know which question it is. */
    code: Type.String(),
    /** When the provider forgets it. */
    until: Type.Number(),
    intervalMs: Type.Number(),
  },
  closed,
)

/** Where an approval can be: `approved` is a grant that nobody has used yet. */
export const STATES = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'used'] as const

const approvalSchema = Type.Object(
  {
    question: questionSchema,
    state: Type.Enum(STATES),
    votes: Type.Array(voteSchema),
    /** How the user's confirmation stands; `waived`: nobody could ask. Absent until the user was asked. */
    confirmation: Type.Optional(
      Type.Object(
        { state: Type.Enum(['asked', 'confirmed', 'waived']), asked: Type.Union([askedSchema, Type.Null()]) },
        closed,
      ),
    ),
    /** The call that used the grant. */
    usedBy: orNull(Type.String()),
  },
  closed,
)

const eventSchema = Type.Union([
  event('created', { question: questionSchema, call: Type.String() }),
  event('asked', askedSchema.properties),
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

/** What approvers see of the arguments. */
export type Preview = Static<typeof previewSchema>
/** What is asked, and for whom. */
export type Question = Static<typeof questionSchema>
/** An approval as it stands. */
export type Approval = Static<typeof approvalSchema>
export type Vote = Static<typeof voteSchema>
/** A question to the user that the session acts for. */
export type UserQuestion = Static<typeof askedSchema>

/** What happened to one approval, in the order of its journal key: the approval's id. */
export type ApprovalEvent = Static<typeof eventSchema>

/**
 * Reads an event from the journal. Throws for one that this version does not know: nothing is decided on half a history. A vote of a newer
 * version is read without the members that are not known, and its voter as known by name only: such a vote fills a quorum of one.
 */
export function decodeEvent(value: unknown): ApprovalEvent {
  if (Check(eventSchema, value)) return value
  if (isObject(value) && value.t === 'vote') {
    const { by, verdict, reason, at, via } = value
    const vote = { t: 'vote', by, verdict, reason, at, ...(via !== undefined && { via }) }
    if (Check(eventSchema, vote)) return vote
  }
  const t = typeof value === 'object' && value !== null && 't' in value ? String(value.t) : 'none'
  throw new Error(`an approval event of kind ${JSON.stringify(t)} is not known in this version`)
}
