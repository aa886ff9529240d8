import { member } from '../../wire/json.ts'
import { eventName } from '../../wire/sse.ts'
import { ModelFrame } from '../frame.ts'
import type { Events } from './dialect.ts'

const COLON = 0x3a

/** Events that say by their name what they are; those of `last` end a stream. Each is looked at: they cannot be told by a search for a few words. */
export function namedEvents(last: ReadonlySet<string>): Events {
  return {
    frame(event) {
      if (event[0] === COLON) return ModelFrame.named('progress', event)
      return ModelFrame.named(last.has(nameOf(event)) ? 'final' : 'partial', event)
    },
    together: () => null,
    fails: (event) => nameOf(event) === 'error',
  }
}

/** The name of an event; where the line is missing, what its data says of its type. */
function nameOf(event: Uint8Array): string {
  const name = eventName(event)
  if (name !== null) return name
  const type = member(ModelFrame.named('partial', event).value, 'type')
  return typeof type === 'string' ? type : ''
}
