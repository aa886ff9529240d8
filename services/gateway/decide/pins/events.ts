import { type JournalSpec, unknownEvent } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

/**
 * Journal events of a server: the definition first seen in mode `learn`, definitions that differ from every pin (each once),
 * accepted and rejected definitions.
 */
const eventSchema = Type.Object(
  {
    t: Type.Enum(['learned', 'drifted', 'accepted', 'rejected'], { type: 'string' }),
    tool: Type.String({ minLength: 1 }),
    digest: Type.String({ minLength: 1 }),
    /** Canonical form of the definition; absent if too long. */
    definition: Type.Optional(Type.String()),
    /** The person who accepted or rejected it. */
    by: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)

export type PinEvent = Static<typeof eventSchema>

const isEvent = Compile(eventSchema)

/** Decodes a journal event. Throws for one that this version does not know: an incomplete history pins too little. */
export function decodePinEvent(value: unknown): PinEvent {
  if (isEvent.Check(value)) return value
  throw unknownEvent('a pin event', value)
}

/** The journal of pins. */
export function pinsJournal({ pinStorePath }: { readonly pinStorePath: string }): JournalSpec<PinEvent> {
  return { name: 'pins', path: pinStorePath, decode: decodePinEvent }
}
