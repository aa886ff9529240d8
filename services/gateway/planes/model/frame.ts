import { isUtf8 } from 'node:buffer'
import { isObject, JsonError, type JsonObject, MESSAGE_LIMITS, parseStrict } from '@plat/core'
import type { Frame } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/message.ts'
import { eventData } from '../wire/sse.ts'
import { InvalidResponseError } from './invalid.ts'

const DONE = Buffer.from('[DONE]')
/** Prefix of the data of an event. */
const DATA = Buffer.from('data: ')
const BLANK_LINE = Buffer.from('\n\n')
const LF = 0x0a
const LINE_END = Buffer.of(LF)
const CR = 0x0d

/**
 * A whole JSON response, or one event of a stream. Frames of an upstream are parsed strictly when they are made, once: meter, redaction and
 * telemetry read the same value. Bytes that no review changes leave as they came.
 */
export class ModelFrame implements Frame {
  readonly role: Frame['role']
  readonly raw: Uint8Array
  /** The JSON alone; null: a comment, another event without data, or the `[DONE]` that ends a stream. */
  readonly json: Uint8Array | null
  /** Undefined where there is no JSON, and in errors that the gateway wrote itself. */
  readonly value: unknown
  readonly isEvent: boolean

  private constructor(role: Frame['role'], raw: Uint8Array, data: Pick<ModelFrame, 'json' | 'value' | 'isEvent'>) {
    this.role = role
    this.raw = raw
    this.json = data.json
    this.value = data.value
    this.isEvent = data.isEvent
  }

  /** A whole JSON body. Throws `InvalidResponseError` where it is not strict JSON. */
  static body(json: Uint8Array): ModelFrame {
    return new ModelFrame('final', json, { json, value: readJson(json), isEvent: false })
  }

  /** The body of an error, in the dialect of the caller. */
  static error(json: Uint8Array): ModelFrame {
    return new ModelFrame('error', json, { json, value: undefined, isEvent: false })
  }

  /** The terminal error of a stream. */
  static errorEvent(raw: Uint8Array): ModelFrame {
    return new ModelFrame('error', raw, { json: null, value: undefined, isEvent: true })
  }

  /** A body that is text, which reviews read as `{text}`. Throws `InvalidResponseError` where it is not UTF-8. */
  static text(body: Uint8Array): ModelFrame {
    if (!isUtf8(body)) throw new InvalidResponseError('a text that is not UTF-8')
    const value = { text: Buffer.from(body).toString('utf8') }
    return new ModelFrame('final', body, { json: Buffer.from(JSON.stringify(value)), value, isEvent: false })
  }

  /** A line of results. Throws `InvalidResponseError` where it is not an object in strict JSON. */
  static line(json: Uint8Array): ModelFrame {
    const value = readJson(json)
    if (!isObject(value)) throw new InvalidResponseError('a result that is not a JSON object')
    return new ModelFrame('partial', Buffer.concat([json, LINE_END]), { json, value, isEvent: true })
  }

  /** A piece of a body that no review reads, such as sound. */
  static piece(raw: Uint8Array): ModelFrame {
    return new ModelFrame('partial', raw, { json: null, value: undefined, isEvent: true })
  }

  /** An event whose data, if it has any, was read with `readEvent`. */
  static event(role: 'progress' | 'partial' | 'final', raw: Uint8Array, data: EventData | null): ModelFrame {
    return new ModelFrame(role, raw, { json: data?.json ?? null, value: data?.value, isEvent: true })
  }
}

/** The data of an event, as bytes and parsed. */
export interface EventData {
  readonly json: Uint8Array
  readonly value: JsonObject
}

/**
 * Reads the data of an event: null where it has none, `done` where it is `[DONE]`.
 * Throws `InvalidResponseError` where the event is not UTF-8, or its data is not an object in strict JSON.
 */
export function readEvent(event: Uint8Array): EventData | 'done' | null {
  if (!isUtf8(event)) throw new InvalidResponseError('an event that is not UTF-8')
  const data = dataOf(event)
  if (data === null || data.length === 0) return null
  if (DONE.equals(data)) return 'done'
  const value = readJson(data)
  if (!isObject(value)) throw new InvalidResponseError('an event that is not a JSON object')
  return { json: data, value }
}

/** Events with one line of data are read without a search for other fields. */
function dataOf(event: Uint8Array): Uint8Array | null {
  return isOneLine(event) ? event.subarray(DATA.length, event.length - BLANK_LINE.length) : eventData(event)
}

function isOneLine(event: Uint8Array): boolean {
  for (let at = 0; at < DATA.length; at++) if (event[at] !== DATA[at]) return false
  const end = event.length - BLANK_LINE.length
  return event.indexOf(LF) === end && event[end + 1] === LF && event.indexOf(CR) === -1
}

/** Throws `InvalidResponseError`. */
function readJson(json: Uint8Array): unknown {
  try {
    return parseStrict(json, MESSAGE_LIMITS)
  } catch (error) {
    if (error instanceof JsonError) throw new InvalidResponseError('what is not strict JSON')
    throw error
  }
}

/** The same bytes with the methods of a `Buffer`. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** The frames of plain events, which passed all checks: they are only parsed. */
export function splitRun(events: Uint8Array): readonly ModelFrame[] {
  const view = viewOf(events)
  const frames: ModelFrame[] = []
  let start = 0
  for (let blank = view.indexOf(BLANK_LINE); blank !== -1; blank = view.indexOf(BLANK_LINE, start)) {
    const event = view.subarray(start, blank + BLANK_LINE.length)
    const json = dataOf(event)
    const value = json === null ? undefined : parsedOrUndefined(json)
    frames.push(ModelFrame.event('partial', event, json !== null && isObject(value) ? { json, value } : null))
    start += event.length
  }
  return frames
}
