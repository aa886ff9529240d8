import { unknownEvent } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const texts = Type.Array(Type.String())

const person = Type.Object({
  user: Type.String(),
  groups: texts,
  known: Type.Optional(
    Type.Object({
      names: texts,
      subject: Type.Union([Type.Object({ issuer: Type.String(), subject: Type.String() }), Type.Null()]),
    }),
  ),
  auth: Type.Optional(
    Type.Object({
      acr: Type.Union([Type.String(), Type.Null()]),
      amr: texts,
      at: Type.Union([Type.Number(), Type.Null()]),
    }),
  ),
})

const begun = Type.Object({
  t: Type.Literal('begun'),
  /** Null: the holder of the static token. */
  person: Type.Union([person, Type.Null()]),
  /** Of the static token, keyed with the secret of the session; empty for people. */
  tokenMark: Type.String(),
  /** Milliseconds since the epoch. */
  at: Type.Number(),
  seenAt: Type.Number(),
  expiresAt: Type.Number(),
})

const eventSchema = Type.Union([
  begun,
  Type.Object({ t: Type.Literal('seen'), at: Type.Number() }),
  Type.Object({ t: Type.Literal('ended') }),
  Type.Object({ t: Type.Literal('spent'), until: Type.Number() }),
])

/** `spent`: the code of a link was used; its key is the id of the code. */
export type BrowserEvent = Static<typeof eventSchema>
export type BegunEvent = Static<typeof begun>

/** @throws if it is not an event of this version */
export function decodeBrowserEvent(value: unknown): BrowserEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of the sessions of the console', value)
}
