import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const

const ownerSchema = Type.Object(
  {
    tenant: Type.String(),
    namespace: Type.String({ minLength: 1 }),
    agent: Type.String({ minLength: 1 }),
    /** Null: the sessions of the owner act for nobody. */
    user: Type.Union([Type.String(), Type.Null()]),
    /** Issuer of the owner's tokens; absent in events of older versions. */
    issuer: Type.Optional(Type.String()),
  },
  closed,
)

const eventSchema = Type.Union([
  /** `call` is the one whose answer brought it; times in milliseconds since the epoch. */
  Type.Object(
    {
      t: Type.Literal('bound'),
      at: Type.Number(),
      owner: ownerSchema,
      call: Type.String(),
      /** Sessions of the owner that sent what it is about; absent: too many, or not known in the version that wrote it. */
      sessions: Type.Optional(Type.Array(Type.String())),
    },
    closed,
  ),
  /** A session of the owner sends a message into it; absent: it is not known which ones do. */
  Type.Object({ t: Type.Literal('sent'), at: Type.Number(), session: Type.Optional(Type.String()) }, closed),
  Type.Object({ t: Type.Literal('used'), at: Type.Number() }, closed),
])

/** Who a task or a context belongs to: an agent, for one user. Each session of the two may go on with it. */
export type Owner = Static<typeof ownerSchema>

/** What happened to one task or context. The key of the journal is `<task or context>/<ns>/<agent>/<id>`. */
export type BindingEvent = Static<typeof eventSchema>

/** Reads an event from the journal. Throws for one that this version does not know: nothing loses its owner by accident. */
export function decodeBindingEvent(value: unknown): BindingEvent {
  if (Check(eventSchema, value)) return value
  const t = typeof value === 'object' && value !== null && 't' in value ? String(value.t) : 'none'
  throw new Error(`a binding event of kind ${JSON.stringify(t)} is not known in this version`)
}
