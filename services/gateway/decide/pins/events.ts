import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * What the journal of pins keeps, per server: the definition that a tool had when it was first seen in mode `learn`, the
 * definitions that differed from every pin, each told once, and those that somebody accepted.
 */
const eventSchema = Type.Object(
  {
    t: Type.Enum(['learned', 'drifted', 'accepted'], { type: 'string' }),
    tool: Type.String({ minLength: 1 }),
    digest: Type.String({ minLength: 1 }),
    /** The definition in its canonical form; absent where it was too long. */
    definition: Type.Optional(Type.String()),
    /** Who accepted it. */
    by: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)

export type PinEvent = Static<typeof eventSchema>

const isEvent = Compile(eventSchema)

/** Reads an event from the journal. Throws for one that this version does not know: half a history pins too little. */
export function decodePinEvent(value: unknown): PinEvent {
  if (isEvent.Check(value)) return value
  throw new Error('the journal holds a pin event that is not known in this version')
}
