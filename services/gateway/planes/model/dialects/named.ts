import { isObject, type JsonObject } from '@plat/core'
import { eventName } from '../../wire/sse.ts'
import { ModelFrame, readEvent } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { isSet } from './checks.ts'
import type { Events } from './dialect.ts'
import type { ShapeFault } from './shapes.ts'

/** Meaning of the events of a dialect, by their data. */
export interface NamedEvents {
  /** Types of the events that end a stream. */
  readonly last: ReadonlySet<unknown>
  shapeFault(event: JsonObject): ShapeFault
  /** Whether an event is a piece of the answer, such as a few words, and nothing else; by the rule of `Events.isPlain`. */
  isPiece(event: JsonObject): boolean
}

/** Streams whose events have a type: in the data, and as the name of the event, which must agree, since clients read either. */
export function namedEvents({ last, shapeFault, isPiece }: NamedEvents): Events {
  return {
    frame(event) {
      const data = readEvent(event)
      // Some servers end every stream as OpenAI's oldest endpoint does. It ends nothing here.
      if (data === null || data === 'done') return ModelFrame.event('progress', event, null)
      const { value } = data
      const name = eventName(event)
      const type = isSet(value.type) ? value.type : name
      if (type === 'error' || name === 'error' || (isObject(value.error) && value.type === undefined))
        throw new InvalidResponseError('an error in its stream')
      if (typeof type !== 'string' || (name !== null && name !== type))
        throw new InvalidResponseError('an event whose name is not its type')
      const fault = shapeFault(value)
      if (fault !== null) throw new InvalidResponseError(fault)
      return ModelFrame.event(last.has(type) ? 'final' : 'partial', event, data)
    },
    isPlain: ({ role, value }) => role === 'partial' && isObject(value) && isPiece(value),
  }
}
