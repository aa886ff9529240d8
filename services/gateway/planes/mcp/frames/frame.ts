import type { Frame, Message } from '../../../call/index.ts'
import { member, parsedOrUndefined } from '../../wire/json.ts'
import { eventData, eventId, withEventData, withEventId } from '../../wire/sse.ts'

const METHOD_MEMBER = Buffer.from('"method"')
const ESCAPE = Buffer.from('\\u')

/** A JSON answer, or one event of a stream. What nobody looks at is never parsed and leaves as the bytes that came. */
export class McpFrame implements Frame {
  readonly role: Frame['role']
  readonly raw: Uint8Array
  /** The JSON-RPC message alone; null for comments and other events without data. */
  readonly json: Uint8Array | null
  readonly messages: readonly Message[]
  readonly #inEvent: boolean
  #value: unknown
  #parsed = false

  private constructor(
    role: Frame['role'],
    bytes: { readonly raw: Uint8Array; readonly json: Uint8Array | null },
    inEvent: boolean,
    messages: readonly Message[] = NO_MESSAGES,
  ) {
    this.role = role
    this.raw = bytes.raw
    this.json = bytes.json
    this.messages = messages
    this.#inEvent = inEvent
  }

  /** A whole JSON body. */
  static body(role: Frame['role'], json: Uint8Array): McpFrame {
    return new McpFrame(role, { raw: json, json }, false)
  }

  /** One event of a stream; its role is read from the message. */
  static event(raw: Uint8Array): McpFrame {
    const data = eventData(raw)
    // An event whose data is empty carries an id to resume from, and no message.
    const json = data?.length === 0 ? null : data
    return new McpFrame(json === null ? 'progress' : roleOf(json), { raw, json }, true)
  }

  /** The message, parsed on first use; undefined where there is none or where it is not JSON. */
  get value(): unknown {
    if (!this.#parsed) {
      this.#value = this.json === null ? undefined : parsedOrUndefined(this.json)
      this.#parsed = true
    }
    return this.#value
  }

  /** The same frame with another message; an event keeps its id and its other fields. */
  withJson(json: Uint8Array): McpFrame {
    const raw = this.#inEvent ? withEventData(this.raw, json) : json
    return new McpFrame(this.role, { raw, json }, this.#inEvent, this.messages)
  }

  /** The same frame, known to ask something of the client. */
  asking(messages: readonly Message[]): McpFrame {
    return new McpFrame(this.role, this, this.#inEvent, messages)
  }

  /** The id by which the client would take its stream up again; null where there is none. */
  get eventId(): string | null {
    return this.#inEvent ? eventId(this.raw) : null
  }

  /** The same frame under another event id, or under none. */
  withEventId(id: string | null): McpFrame {
    return new McpFrame(this.role, { raw: withEventId(this.raw, id), json: this.json }, true, this.messages)
  }
}

const NO_MESSAGES: readonly Message[] = []

/** What a message is, by its members. */
export function roleOf(json: Uint8Array): Frame['role'] {
  if (!mentions(json, METHOD_MEMBER)) return 'final'
  const message = parsedOrUndefined(json)
  if (member(message, 'method') === undefined) return 'final'
  return member(message, 'id') === undefined ? 'progress' : 'request'
}

/**
 * Whether a JSON text can hold a member of this name (given with its quotes). A name without that spelling can only be written
 * with a `\u` escape; then the answer is yes as well, and the caller parses.
 */
export function mentions(json: Uint8Array, quotedName: Uint8Array): boolean {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  return bytes.includes(quotedName) || bytes.includes(ESCAPE)
}

const OPEN_BRACE = 0x7b
const SPACES: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/** Whether the text begins as a JSON object. Arrays are batches, whose messages nobody would look at; none is let through. */
export function isJsonObject(json: Uint8Array): boolean {
  let at = 0
  while (SPACES.has(json[at])) at++
  return json[at] === OPEN_BRACE
}
