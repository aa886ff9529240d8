import { type Frame, FrameRun } from '../../call/index.ts'
import { isObject, member, parsedOrUndefined } from '../wire/json.ts'
import { eventData, SseSplitter } from '../wire/sse.ts'

const DONE = Buffer.from('[DONE]')
/** The end of a stream as every provider writes it. */
const DONE_EVENT = Buffer.from('data: [DONE]\n\n')
const ERROR = Buffer.from('"error"')
const USAGE = Buffer.from('"usage"')
const UNSET = Buffer.from(':null')
const SPACED_UNSET = Buffer.from(': null')
const COLON = 0x3a
const BACKSLASH = 0x5c

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

  /** One event of a stream whose events are told apart by their names. */
  static named(role: 'progress' | 'partial' | 'final', raw: Uint8Array): ModelFrame {
    return new ModelFrame(role, raw, true)
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
  if (DONE_EVENT.equals(event)) return true
  if (!mentions(event, DONE)) return false
  const data = eventData(event)
  return data !== null && DONE.equals(data)
}

/** Whether the bytes hold others. */
function mentions(bytes: Uint8Array, wanted: Uint8Array): boolean {
  return viewOf(bytes).includes(wanted)
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Whether an upstream may report an error in an event. */
export function mayFail(event: Uint8Array): boolean {
  return mentions(event, ERROR)
}

/** Whether bytes may tell what was used: most chunks say `"usage":null` or nothing at all, and are not parsed. */
export function mayReport(bytes: Uint8Array): boolean {
  const view = viewOf(bytes)
  for (let at = view.indexOf(USAGE); at !== -1; at = view.indexOf(USAGE, at + USAGE.length)) {
    const behind = at + USAGE.length
    if (!isUnset(view, behind)) return true
  }
  return false
}

/**
 * `usage` of a whole answer; undefined: it has none. Most have it behind their text, and what stands before it is not parsed: from there
 * to the end stands the rest of the object itself, and not of one inside it, exactly when a brace before it makes it an object.
 */
export function usageOfBody(json: Uint8Array): unknown {
  const view = viewOf(json)
  const at = view.lastIndexOf(USAGE)
  if (at === -1) return undefined
  // Behind a backslash the quote stands in a longer name.
  const rest = view[at - 1] !== BACKSLASH ? parsedOrUndefined(`{${view.toString('utf8', at)}`) : undefined
  return member(isObject(rest) ? rest : parsedOrUndefined(view), 'usage')
}

/** Whether null follows a member's name, as providers write it. */
function isUnset(bytes: Uint8Array, behind: number): boolean {
  return startsAt(bytes, behind, UNSET) || startsAt(bytes, behind, SPACED_UNSET)
}

/**
 * Where an event may have to be looked at, in bytes as Latin-1 text: the end, an error, usage, a comment, or a line that does not end
 * with LF alone. Without the quote or bracket that begins these words, which every event is full of, the search takes half the time.
 */
const LOOKED_AT = /\r|\n:|DONE\]|error"|usage"(?!: ?null)/

/** Whole events as one frame, up to the first that has to be looked at; null: it is the first. One search for all: a native one costs more. */
export function runOf(events: Uint8Array): FrameRun | null {
  if (events[0] === COLON) return null
  const text = viewOf(events).toString('latin1')
  const found = text.search(LOOKED_AT)
  const limit = found === -1 ? text.length : found
  let count = 0
  let shortest = Number.POSITIVE_INFINITY
  let start = 0
  for (let blank = text.indexOf('\n\n'); blank !== -1 && blank < limit; blank = text.indexOf('\n\n', start)) {
    const end = blank + 2
    count++
    if (end - start < shortest) shortest = end - start
    start = end
  }
  if (count === 0) return null
  const raw = start === events.length ? events : events.subarray(0, start)
  return new FrameRun({ raw, count, shortest, split: splitRun })
}

function startsAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false
  return true
}

function splitRun(events: Uint8Array): readonly Frame[] {
  return new SseSplitter().push(events).map((event) => ModelFrame.event(event))
}
