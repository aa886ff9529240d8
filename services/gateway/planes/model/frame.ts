import type { Frame } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/json.ts'
import { eventData } from '../wire/sse.ts'

const DONE = Buffer.from('[DONE]')
const COLON = 0x3a

/** A JSON answer, or one event of a stream. What nobody looks at is never parsed and leaves as the bytes that came. */
export class ModelFrame implements Frame {
  readonly role: Frame['role']
  readonly raw: Uint8Array
  readonly #inEvent: boolean
  #value: unknown
  #parsed = false

  private constructor(role: Frame['role'], raw: Uint8Array, inEvent: boolean) {
    this.role = role
    this.raw = raw
    this.#inEvent = inEvent
  }

  /** A whole JSON body. */
  static body(role: 'final' | 'error', json: Uint8Array): ModelFrame {
    return new ModelFrame(role, json, false)
  }

  /** One event; `final` is the `[DONE]` that ends a stream, `progress` a comment. */
  static event(raw: Uint8Array): ModelFrame {
    return new ModelFrame(raw[0] === COLON ? 'progress' : isDone(raw) ? 'final' : 'partial', raw, true)
  }

  /** The terminal error of a stream. */
  static errorEvent(raw: Uint8Array): ModelFrame {
    return new ModelFrame('error', raw, true)
  }

  /** The answer or the chunk, parsed on first use; undefined where it is no JSON. */
  get value(): unknown {
    if (!this.#parsed) {
      const json = this.#inEvent ? eventData(this.raw) : this.raw
      this.#value = json === null ? undefined : parsedOrUndefined(json)
      this.#parsed = true
    }
    return this.#value
  }
}

/** Text can hold `[DONE]` as well, so only an event that is nothing else counts. */
function isDone(event: Uint8Array): boolean {
  if (!mentions(event, DONE)) return false
  const data = eventData(event)
  return data !== null && DONE.equals(data)
}

/** Whether the bytes hold others. */
export function mentions(bytes: Uint8Array, wanted: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(wanted)
}
