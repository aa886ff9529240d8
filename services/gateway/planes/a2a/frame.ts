import { MESSAGE_LIMITS, parseStrict } from '@plat/core'
import type { Frame } from '../../call/index.ts'
import { eventData, withEventData } from '../wire/sse.ts'
import { downgradedResponse } from './versions/responses.ts'

/**
 * A JSON response, or one event of a stream, in A2A 1.0. Parsed strictly, because the ids in it determine who may access a task later. For a
 * caller that speaks 0.3 only the bytes sent to it are of that version.
 */
export class A2aFrame implements Frame {
  readonly role: Frame['role']
  /** The JSON-RPC response alone; null for comments and other events without data. */
  readonly json: Uint8Array | null
  readonly #raw: Uint8Array
  readonly #inEvent: boolean
  /** Method of a caller that speaks 0.3, named as in 1.0; null for 1.0. */
  readonly #legacy: string | null
  #sent: Uint8Array | null = null
  #value: unknown
  #parsed = false

  private constructor(
    role: Frame['role'] | null,
    bytes: { readonly raw: Uint8Array; readonly json: Uint8Array | null },
    form: { readonly inEvent: boolean; readonly legacy: string | null },
  ) {
    this.#raw = bytes.raw
    this.json = bytes.json
    this.#inEvent = form.inEvent
    this.#legacy = form.legacy
    this.role = role ?? (bytes.json === null ? 'progress' : 'partial')
  }

  static body(role: 'final' | 'error', json: Uint8Array): A2aFrame {
    return new A2aFrame(role, { raw: json, json }, { inEvent: false, legacy: null })
  }

  /** Returns the frame of one event of a stream. */
  static event(raw: Uint8Array): A2aFrame {
    const data = eventData(raw)
    return new A2aFrame(null, { raw, json: data?.length === 0 ? null : data }, { inEvent: true, legacy: null })
  }

  /** The bytes for the caller, in its version. */
  get raw(): Uint8Array {
    if (this.#legacy === null || this.json === null) return this.#raw
    this.#sent ??= this.#encoded(downgradedResponse(this.json, this.#legacy))
    return this.#sent
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
    const form = { inEvent: this.#inEvent, legacy: this.#legacy }
    return new A2aFrame(this.role, { raw: this.#encoded(json), json }, form)
  }

  /** Returns the frame for a caller that speaks 0.3 and called this method, named as in 1.0; null for 1.0. */
  forCaller(legacy: string | null): A2aFrame {
    if (legacy === this.#legacy) return this
    return new A2aFrame(this.role, { raw: this.#raw, json: this.json }, { inEvent: this.#inEvent, legacy })
  }

  /** Returns a frame of the same form, for the same caller, as an event with another response. */
  event(json: Uint8Array): A2aFrame {
    return A2aFrame.event(eventOf(json)).forCaller(this.#legacy)
  }

  #encoded(json: Uint8Array): Uint8Array {
    return this.#inEvent ? withEventData(this.#raw, json) : json
  }
}

/** Returns an event with one response. */
export function eventOf(json: Uint8Array): Uint8Array {
  return withEventData(Buffer.from('data: \n\n'), json)
}
