import { type Frame, FrameRun } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/json.ts'
import { eventData, SseSplitter } from '../wire/sse.ts'

const DONE = Buffer.from('[DONE]')
const ERROR = Buffer.from('"error"')
const USAGE = Buffer.from('"usage"')
const UNSET = [Buffer.from(':null'), Buffer.from(': null')]
const BLANK_LINE = Buffer.from('\n\n')
const COMMENT = Buffer.from('\n:')
const COLON = 0x3a
const CR = 13

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
    if (!UNSET.some((unset) => unset.compare(view, behind, behind + unset.length) === 0)) return true
  }
  return false
}

/**
 * Whole events as one frame, when none of them has to be looked at: no end, no error, no usage, no comment, and lines that end with
 * LF alone. Null: take them one by one.
 */
export function runOf(events: Uint8Array): FrameRun | null {
  const view = viewOf(events)
  if (view[0] === COLON || view.includes(CR) || view.includes(DONE) || view.includes(COMMENT)) return null
  if (mayFail(view) || mayReport(view)) return null
  let count = 0
  let shortest = Number.POSITIVE_INFINITY
  for (let start = 0; start < view.length; count++) {
    const end = view.indexOf(BLANK_LINE, start) + BLANK_LINE.length
    if (end < start + BLANK_LINE.length) return null
    if (end - start < shortest) shortest = end - start
    start = end
  }
  return new FrameRun({ raw: events, count, shortest, split: splitRun })
}

function splitRun(events: Uint8Array): readonly Frame[] {
  return new SseSplitter().push(events).map((event) => ModelFrame.event(event))
}
