import { isObject, type JsonObject } from '../../wire/json.ts'
import { eventName } from '../../wire/sse.ts'
import { ModelFrame, readEvent } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { isSet } from './checks.ts'
import type { Events } from './dialect.ts'
import type { ShapeFault } from './shapes.ts'

/**
 * Streams whose events have a type: in the data, and as the name of the event, which must agree, since clients read either. Those of
 * `last` end a stream. `shapeFault` checks the data of an event.
 */
export function namedEvents(last: ReadonlySet<unknown>, shapeFault: (event: JsonObject) => ShapeFault): Events {
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
    isPlain: () => false,
  }
}
