import type { Frame, Message } from '../../../call/index.ts'
import { member, parsedOrUndefined } from '../../wire/json.ts'
import { eventData, eventId, withEventData, withEventId } from '../../wire/sse.ts'

/**
 * What makes a message more than an answer that asks for nothing: a method, another round (revision 2026-07-28), the result type of a
 * task. In one look, since each answer is searched for all of them.
 */
const MORE_THAN_PLAIN = /"(?:method|inputRequests|requestState|task)"/
/** A name without its own spelling can only be written with such an escape. */
const ESCAPE = '\\u'

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
  #plain: boolean | null = null

  /** Without a role it has the one that its message says. */
  private constructor(
    role: Frame['role'] | null,
    bytes: { readonly raw: Uint8Array; readonly json: Uint8Array | null },
    inEvent: boolean,
    messages: readonly Message[] = NO_MESSAGES,
  ) {
    this.raw = bytes.raw
    this.json = bytes.json
    this.messages = messages
    this.#inEvent = inEvent
    this.role = role ?? this.saidRole
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
    return new McpFrame(null, { raw, json }, true)
  }

  /** Whether it can only be an answer that asks for nothing. What may be more has to be parsed. */
  get isPlain(): boolean {
    this.#plain ??= this.json !== null && isPlain(this.json)
    return this.#plain
  }

  /** What the message is, by its members. */
  get saidRole(): Frame['role'] {
    if (this.json === null) return 'progress'
    if (this.isPlain || member(this.value, 'method') === undefined) return 'final'
    return member(this.value, 'id') === undefined ? 'progress' : 'request'
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

function isPlain(json: Uint8Array): boolean {
  // All that is looked for is ASCII, which stands in these bytes as in Latin-1.
  const text = bufferOf(json).toString('latin1')
  return !MORE_THAN_PLAIN.test(text) && !text.includes(ESCAPE)
}

/** Whether a JSON text can hold a member of this name (given with its quotes). An escape may spell it: then the caller parses as well. */
export function mentions(json: Uint8Array, quotedName: Uint8Array): boolean {
  const bytes = bufferOf(json)
  return bytes.includes(quotedName) || bytes.includes(ESCAPE)
}

function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

const OPEN_BRACE = 0x7b
const SPACES: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/** Whether the text begins as a JSON object. Arrays are batches, whose messages nobody would look at; none is let through. */
export function isJsonObject(json: Uint8Array): boolean {
  let at = 0
  while (SPACES.has(json[at])) at++
  return json[at] === OPEN_BRACE
}
