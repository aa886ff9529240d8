import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const labels = Type.Array(Type.String({ minLength: 1 }))

/** Time of the session's call and expiry of its token, in milliseconds since the epoch. */
const reader = {
  at: Type.Number(),
  expiresAt: Type.Number(),
  /** Empty: not caused by a call. */
  jti: Type.String(),
  /** Sessions that delegated the token, nearest first. Absent: none, or written by an older version. */
  delegators: Type.Optional(labels),
  /** Labels of the token. Absent: none. */
  brought: Type.Optional(labels),
}

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('added'), ...reader, labels }, closed),
  /** `labels`: of the session; `inherited`: of its token, cleared for that token if `once` is true, else for all. */
  Type.Object({ t: Type.Literal('cleared'), ...reader, labels, inherited: labels, once: Type.Boolean() }, closed),
  Type.Object({ t: Type.Literal('used'), ...reader }, closed),
  /** The session gets new labels of this agent, `<namespace>/<agent>`, from now on. */
  Type.Object({ t: Type.Literal('listens'), ...reader, to: Type.String() }, closed),
  Type.Object(
    {
      t: Type.Literal('snapshot'),
      at: Type.Number(),
      labels,
      /** Cleared inherited labels, by `jti`; empty: for all tokens. */
      cleansed: Type.Array(Type.Object({ jti: Type.String(), labels }, closed)),
      tokens: Type.Array(Type.Object({ jti: Type.String(), expiresAt: Type.Number() }, closed)),
      /** Places where its labels count. Absent in snapshots of older versions. */
      places: Type.Optional(Type.Array(Type.Object({ place: Type.String(), brought: labels }, closed))),
      listensTo: Type.Optional(labels),
    },
    closed,
  ),
])

/** A change of one session's labels. The journal key is `<namespace>/<agent>/<session>`. */
export type TaintEvent = Static<typeof eventSchema>

/** Decodes a journal event. Throws for one that this version does not know: no label may be lost. */
export function decodeTaintEvent(value: unknown): TaintEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('a taint event', value)
}

/** Returns the caller of events with this key: agent and session. */
export function sessionIn(key: string): readonly [agent: string, session: string] {
  return [key.slice(0, key.lastIndexOf('/')), key]
}

/** The journal of taint labels. */
export function taintsJournal({ taintStorePath: path }: { readonly taintStorePath: string }): JournalSpec<TaintEvent> {
  return { name: 'taints', path, decode: decodeTaintEvent, callerOf: sessionIn }
}
