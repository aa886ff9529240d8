import { MESSAGE_LIMITS, parseStrict } from '@plat/core'
import type { Frame } from '../../call/index.ts'
import { eventData, withEventData } from '../wire/sse.ts'

/** A JSON response, or one event of a stream. Parsed strictly, because the ids in it determine who may access a task later. */
export class A2aFrame implements Frame {
  readonly role: Frame['role']
  readonly raw: Uint8Array
  /** The JSON-RPC response alone; null for comments and other events without data. */
  readonly json: Uint8Array | null
  readonly #inEvent: boolean
  #value: unknown
  #parsed = false

  private constructor(
    role: Frame['role'] | null,
    bytes: { readonly raw: Uint8Array; readonly json: Uint8Array | null },
    inEvent: boolean,
  ) {
    this.raw = bytes.raw
    this.json = bytes.json
    this.#inEvent = inEvent
    this.role = role ?? (bytes.json === null ? 'progress' : 'partial')
  }

  /** Returns the frame of a whole JSON body. */
  static body(role: 'final' | 'error', json: Uint8Array): A2aFrame {
    return new A2aFrame(role, { raw: json, json }, false)
  }

  /** Returns the frame of one event of a stream. */
  static event(raw: Uint8Array): A2aFrame {
    const data = eventData(raw)
    return new A2aFrame(null, { raw, json: data?.length === 0 ? null : data }, true)
  }

  /** The response, parsed on first use; undefined if there is none. Throws JsonError if it is not strict JSON. */
  get value(): unknown {
    if (!this.#parsed) {
      this.#value = this.json === null ? undefined : parseStrict(this.json, MESSAGE_LIMITS)
      this.#parsed = true
    }
    return this.#value
  }

  /** Returns the frame with another response; an event keeps its other fields. */
  withJson(json: Uint8Array): A2aFrame {
    const raw = this.#inEvent ? withEventData(this.raw, json) : json
    return new A2aFrame(this.role, { raw, json }, this.#inEvent)
  }
}

/** Returns an event with one response. */
export function eventOf(json: Uint8Array): Uint8Array {
  return withEventData(Buffer.from('data: \n\n'), json)
}
