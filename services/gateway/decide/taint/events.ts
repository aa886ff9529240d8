import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const labels = Type.Array(Type.String({ minLength: 1 }))

/** When the session last called and until when its token is valid, in milliseconds since the epoch. */
const heard = {
  at: Type.Number(),
  expiresAt: Type.Number(),
  /** Empty: no call caused the event. */
  jti: Type.String(),
  /** Sessions that delegated the token, nearest first; absent: none, or not known in the version that wrote it. */
  delegators: Type.Optional(labels),
  /** Labels that the token brings; absent: none. */
  brought: Type.Optional(labels),
}

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('added'), ...heard, labels }, closed),
  /** `labels` the session's own; `inherited` those that its token brought, for that token where `once` is true, else for all. */
  Type.Object({ t: Type.Literal('cleared'), ...heard, labels, inherited: labels, once: Type.Boolean() }, closed),
  Type.Object({ t: Type.Literal('used'), ...heard }, closed),
  /** From here on it gets the labels of this agent, `<namespace>/<agent>`, as they come. */
  Type.Object({ t: Type.Literal('listens'), ...heard, to: Type.String() }, closed),
  Type.Object(
    {
      t: Type.Literal('snapshot'),
      at: Type.Number(),
      labels,
      /** What was cleared of inherited labels, by `jti`; empty: for all tokens. */
      cleansed: Type.Array(Type.Object({ jti: Type.String(), labels }, closed)),
      tokens: Type.Array(Type.Object({ jti: Type.String(), expiresAt: Type.Number() }, closed)),
      /** Where its labels count for others; absent in snapshots of older versions. */
      places: Type.Optional(Type.Array(Type.Object({ place: Type.String(), brought: labels }, closed))),
      listensTo: Type.Optional(labels),
    },
    closed,
  ),
])

/** What happened to the labels of one session. The key of the journal is `<namespace>/<agent>/<session>`. */
export type TaintEvent = Static<typeof eventSchema>

/** Reads an event from the journal. Throws for one that this version does not know: no label is forgotten by accident. */
export function decodeTaintEvent(value: unknown): TaintEvent {
  if (Check(eventSchema, value)) return value
  const t = typeof value === 'object' && value !== null && 't' in value ? String(value.t) : 'none'
  throw new Error(`a taint event of kind ${JSON.stringify(t)} is not known in this version`)
}
