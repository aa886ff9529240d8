import { endOfNumber, JsonError, skipSpace, skipString } from '@plat/core'
import type { ModelFrame } from '../frame.ts'

const SPACE = 0x20
const QUOTE = 0x22
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const BACKSLASH = 0x5c

/** Any integer of so many digits is safe, so that one passes each check that another passes. */
const MAX_COUNT_DIGITS = 15

/** Larger events are not learned: they seldom come again. */
const MAX_EVENT_BYTES = 4096

/** Bytes that are compared at once. */
const WORD_BYTES = 4

/** The member whose value says what kind of event it is. */
const TYPE = Buffer.from('"type"')

const PREFIX = /^(?:event: [\w.]+\n)?data: $/
/** Bytes of the line ends after the data of an event. */
const BLANK_LINE_BYTES = 2

/** Bytes, and a view to read words of them. */
export interface Words {
  readonly bytes: Buffer
  readonly view: DataView
}

export function wordsOf(bytes: Buffer): Words {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) }
}

/** A value that may be any string or any count. */
type Open = 'string' | 'count'

/**
 * The bytes of a checked event without its strings and counts. Chunks of a stream differ from one another only there, and no check depends on
 * what is there: not the grammar, not duplicate names, not depth, not the shape. So what matches passes without being parsed. The value of
 * `type` is part of the template.
 */
export class EventTemplate {
  readonly #words: Words
  readonly #opens: readonly Open[]
  /** Where each open value belongs, in the bytes of the template. */
  readonly #places: readonly number[]

  private constructor({ pieces, opens, places }: Learned) {
    this.#words = wordsOf(Buffer.concat(pieces))
    this.#opens = opens
    this.#places = places
  }

  /** Caller must pass the frame of an event that passed all checks. Returns null for one that is large, or written in an unusual way. */
  static of({ raw, json }: Pick<ModelFrame, 'raw' | 'json'>): EventTemplate | null {
    if (json === null || raw.length > MAX_EVENT_BYTES) return null
    const bytes = Buffer.from(raw)
    const start = Math.max(0, bytes.length - BLANK_LINE_BYTES - json.length)
    if (!PREFIX.test(bytes.toString('latin1', 0, start))) return null
    const learned = learn(bytes, start)
    return learned === null ? null : new EventTemplate(learned)
  }

  /** Returns where the event at `from` ends if it matches, else -1. Caller must know that the bytes are UTF-8. */
  endOf(words: Words, from: number): number {
    const { bytes } = words
    const places = this.#places
    let place = 0
    let at = from
    for (let open = 0; ; open++) {
      const end = places[open] ?? this.#words.bytes.length
      if (end - place > bytes.length - at || !this.#isAt(place, end, words, at - place)) return -1
      at += end - place
      place = end
      if (open === places.length) return at
      at = this.#opens[open] === 'string' ? endOfString(bytes, at) : endOfCount(bytes, at)
      if (at === -1) return -1
    }
  }

  /** Whether the bytes from `start` to `end` of the template are the same as those `shift` bytes further in an event. */
  #isAt(start: number, end: number, { bytes, view }: Words, shift: number): boolean {
    const { bytes: own, view: ownView } = this.#words
    if (end - start < WORD_BYTES) {
      for (let at = start; at < end; at++) if (own[at] !== bytes[at + shift]) return false
      return true
    }
    const last = end - WORD_BYTES
    for (let at = start; at < last; at += WORD_BYTES)
      if (ownView.getInt32(at, true) !== view.getInt32(at + shift, true)) return false
    return ownView.getInt32(last, true) === view.getInt32(last + shift, true)
  }
}

interface Learned {
  /** The fixed parts of a template. */
  readonly pieces: readonly Buffer[]
  readonly opens: readonly Open[]
  readonly places: readonly number[]
}

/** Leaves out the values of an event whose JSON passed `parseStrict`. Returns null where a name is escaped: it may be `type` as well. */
function learn(bytes: Buffer, start: number): Learned | null {
  const pieces: Buffer[] = []
  const opens: Open[] = []
  const places: number[] = []
  let size = 0
  let keptTo = 0
  let isType = false
  let next = start
  for (let at = start; at < bytes.length; at = next) {
    let open: Open | null = null
    if (bytes[at] === QUOTE) {
      next = endOfString(bytes, at)
      const isName = bytes[skipSpace(bytes, next)] === COLON
      if (isName && bytes.subarray(at, next).includes(BACKSLASH)) return null
      if (!isName && !isType) open = 'string'
      isType = isName && TYPE.equals(bytes.subarray(at, next))
    } else if (isNumberStart(bytes[at])) {
      next = endOfNumber(bytes, at)
      if (endOfCount(bytes, at) === next) open = 'count'
    } else next = at + 1
    if (open === null) continue
    pieces.push(bytes.subarray(keptTo, at))
    size += at - keptTo
    keptTo = next
    opens.push(open)
    places.push(size)
  }
  pieces.push(bytes.subarray(keptTo))
  return { pieces, opens, places }
}

/** Returns the byte after the string that begins at `start`, or -1 where there is none that strict JSON allows. */
function endOfString(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) return -1
  for (let at = start + 1; ; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) return endOfEscaped(bytes, start)
    if (byte === undefined || byte < SPACE) return -1
  }
}

function endOfEscaped(bytes: Uint8Array, start: number): number {
  try {
    return skipString(bytes, start)
  } catch (error) {
    if (error instanceof JsonError) return -1
    throw error
  }
}

/** Returns the byte after the integer that begins at `start`, or -1 where there is none, or it has a sign or too many digits. */
function endOfCount(bytes: Uint8Array, start: number): number {
  let end = start
  while (isDigit(bytes[end])) end++
  const digits = end - start
  return digits === 0 || digits > MAX_COUNT_DIGITS || (digits > 1 && bytes[start] === ZERO) ? -1 : end
}

function isNumberStart(byte: number | undefined): boolean {
  return byte === MINUS || isDigit(byte)
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}
