import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { type StoredBeside, voteSchema } from '../store/events.ts'

const closed = { additionalProperties: false } as const
const orNull = <T extends ReturnType<typeof Type.String>>(of: T) => Type.Union([of, Type.Null()])

/** An approval for the rest of a session. Times are milliseconds since the epoch. */
const grantSchema = Type.Object(
  {
    /** Digest of what it covers: `scopeOf`. */
    scope: Type.String(),
    tenant: Type.String(),
    namespace: Type.String(),
    agent: Type.String(),
    session: Type.String(),
    user: orNull(Type.String()),
    server: Type.String(),
    tool: Type.String(),
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    /** Taint labels of the session when the approved call was evaluated: a call with another one is not covered. */
    labels: Type.Array(Type.String()),
    votes: Type.Array(voteSchema),
    createdAt: Type.Number(),
    expiresAt: Type.Number(),
  },
  closed,
)

/** `lifted`: by a person; `ended`: with its session, or by time. */
const grantStates = ['active', 'lifted', 'ended'] as const

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('granted'), grant: grantSchema }, closed),
  Type.Object({ t: Type.Literal('lifted'), by: Type.String() }, closed),
  Type.Object({ t: Type.Literal('ended') }, closed),
  Type.Object({ t: Type.Literal('snapshot'), grant: grantSchema, state: Type.Enum(grantStates) }, closed),
])

export type SessionGrant = Static<typeof grantSchema>
export type GrantState = (typeof grantStates)[number]

/** An event of a session grant. Its journal key is the id of the approval that was given for the session. */
export type GrantEvent = Static<typeof eventSchema>

/** Decodes an event of the journal. Throws for one that this version does not know. */
export function decodeGrantEvent(value: unknown): GrantEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of an approval for a session', value)
}

/** The journal of approvals for sessions, beside that of approvals. */
export function grantsJournal({ approvalStorePath: path }: StoredBeside): JournalSpec<GrantEvent> {
  return { name: 'approval-sessions', path: path === '' ? '' : `${path}.sessions.jsonl`, decode: decodeGrantEvent }
}
