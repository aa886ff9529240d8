import { parseChecked, type StrictJson } from '@plat/core'
import type { Frame, Message } from '../../../call/index.ts'
import { eventId, messageEvent, withEventData, withEventId } from '../../wire/sse.ts'

interface Bytes {
  readonly raw: Uint8Array
  readonly json: Uint8Array | null
}

/** A JSON response, or one event of a stream, with its parsed message. Unchanged bytes are forwarded as received. */
export class McpFrame implements Frame {
  readonly role: Frame['role']
  readonly raw: Uint8Array
  /** The JSON-RPC message alone; null for comments and other events without data. */
  readonly json: Uint8Array | null
  readonly ascii: string | null
  readonly messages: readonly Message[]
  readonly #inEvent: boolean
  #value: unknown
  #parsed: boolean

  private constructor(role: Frame['role'], bytes: Bytes, more: Made) {
    this.role = role
    this.raw = bytes.raw
    this.json = bytes.json
    this.ascii = more.ascii
    this.messages = more.messages
    this.#inEvent = more.inEvent
    this.#parsed = more.parsed !== null
    this.#value = more.parsed?.value
  }

  /** Returns the frame of a whole JSON body with its value and text. */
  static body(role: Frame['role'], json: Uint8Array, parsed: StrictJson): McpFrame {
    const { text } = parsed
    // Any other character takes more bytes than units of a string.
    const ascii = text.length === json.length ? text : null
    return new McpFrame(role, { raw: json, json }, { inEvent: false, messages: NO_MESSAGES, parsed, ascii })
  }

  /** Returns the frame of a body that the gateway wrote; its value is parsed on first use. */
  static written(role: Frame['role'], json: Uint8Array): McpFrame {
    return new McpFrame(role, { raw: json, json }, { ...UNKNOWN, inEvent: false })
  }

  /** Returns the frame of one event of a stream, with its message and the message's value. */
  static event(role: Frame['role'], bytes: Bytes, value: unknown): McpFrame {
    return new McpFrame(role, bytes, { ...UNKNOWN, inEvent: true, parsed: { value } })
  }

  /** The value of the message; undefined if there is no message. Parsed again only if the gateway changed the message. */
  get value(): unknown {
    if (!this.#parsed) {
      this.#value = this.json === null ? undefined : parseChecked(Buffer.from(this.json).toString('utf8'))
      this.#parsed = true
    }
    return this.#value
  }

  /** Returns the frame with another message; an event keeps its id and other fields. */
  withJson(json: Uint8Array): McpFrame {
    const raw = this.#inEvent ? withEventData(this.raw, json) : json
    return new McpFrame(this.role, { raw, json }, { ...UNKNOWN, inEvent: this.#inEvent, messages: this.messages })
  }

  /** Returns the message as an event, for a client whose stream is already open. */
  inEvent(): McpFrame {
    return this.#inEvent || this.json === null ? this : this.#with(messageEvent(this.json), this.messages, true)
  }

  /** Returns the frame with the server's requests to the client. */
  asking(messages: readonly Message[]): McpFrame {
    return this.#with(this.raw, messages, this.#inEvent)
  }

  /** The id with which the client can resume the stream; null if there is none. */
  get eventId(): string | null {
    return this.#inEvent ? eventId(this.raw) : null
  }

  /** Returns the frame with another event id, or without one. */
  withEventId(id: string | null): McpFrame {
    return this.#with(withEventId(this.raw, id), this.messages, true)
  }

  #with(raw: Uint8Array, messages: readonly Message[], inEvent: boolean): McpFrame {
    const parsed = this.#parsed ? { value: this.#value } : null
    const ascii = raw === this.raw ? this.ascii : null
    return new McpFrame(this.role, { raw, json: this.json }, { inEvent, messages, parsed, ascii })
  }
}

interface Made {
  readonly inEvent: boolean
  readonly messages: readonly Message[]
  /** Null: not parsed yet. */
  readonly parsed: { readonly value: unknown } | null
  readonly ascii: string | null
}

const NO_MESSAGES: readonly Message[] = []
const UNKNOWN = { messages: NO_MESSAGES, parsed: null, ascii: null }
