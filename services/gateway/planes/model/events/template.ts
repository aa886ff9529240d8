import { endOfNumber, JsonError, skipSpace, skipString } from '@plat/core'

const SPACE = 0x20
const QUOTE = 0x22
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const BACKSLASH = 0x5c

/** Any integer of so many digits is safe, so that one passes each check that another passes. */
const MAX_COUNT_DIGITS = 15

/** Larger events are not learned: they seldom come again, and each stream keeps a copy. */
const MAX_EVENT_BYTES = 4096

/** Bytes that are compared at once. */
const WORD_BYTES = 4

/** The member whose value says what kind of event it is. */
const TYPE = Buffer.from('"type"')

/** Bytes, and a view to read words of them. */
export interface Words {
  readonly bytes: Buffer
  readonly view: DataView
}

export function wordsOf(bytes: Buffer): Words {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) }
}

/** Where values begin that may differ, and where each ends, in the order of the event. */
interface OpenValues {
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

/**
 * A checked event that others are compared with. They match where they differ in nothing but string values and counts: chunks of a stream
 * differ from one another only there, and no check depends on what is there: not the grammar, not duplicate names, not depth, not the shape.
 * So what matches passes without being parsed. The value of `type` must be the same.
 */
export class EventTemplate {
  readonly #words: Words
  readonly #open: OpenValues

  private constructor(words: Words, open: OpenValues) {
    this.#words = words
    this.#open = open
  }

  /** `json` is the data of an event that passed all checks. Returns null for an event that is large, or written in an unusual way. */
  static of({ raw, json }: { readonly raw: Uint8Array; readonly json: Uint8Array | null }): EventTemplate | null {
    if (json === null || json.buffer !== raw.buffer || raw.length > MAX_EVENT_BYTES) return null
    const start = json.byteOffset - raw.byteOffset
    const end = start + json.length
    // Data on several lines was joined elsewhere.
    if (start < 0 || end > raw.length) return null
    const bytes = Buffer.from(raw)
    const open = openValues(bytes, start, end)
    return open === null ? null : new EventTemplate(wordsOf(bytes), open)
  }

  /** Returns where the event at `from` ends if it matches, else -1. Caller must know that the bytes are UTF-8. */
  endOf({ bytes, view }: Words, from: number): number {
    const { bytes: own, view: ownView } = this.#words
    const { starts, ends } = this.#open
    let place = 0
    let at = from
    for (let next = 0; ; next++) {
      const wordsEnd = Math.min(own.length, place + bytes.length - at) - WORD_BYTES
      while (place <= wordsEnd && ownView.getInt32(place) === view.getInt32(at)) {
        place += WORD_BYTES
        at += WORD_BYTES
      }
      while (place < own.length && own[place] === bytes[at]) {
        place++
        at++
      }
      if (place === own.length) return at
      while ((ends[next] ?? place) < place) next++
      const start = starts[next] ?? own.length
      if (start > place) return -1
      at -= place - start
      at = own[start] === QUOTE ? endOfString(bytes, at) : endOfCount(bytes, at)
      if (at === -1) return -1
      place = ends[next] ?? own.length
    }
  }
}

/** Finds the values in JSON that passed `parseStrict`. Returns null where a name is escaped: it may be `type` as well. */
function openValues(bytes: Uint8Array, start: number, end: number): OpenValues | null {
  const starts: number[] = []
  const ends: number[] = []
  let isType = false
  let next = start
  for (let at = start; at < end; at = next) {
    let isOpen = false
    if (bytes[at] === QUOTE) {
      next = endOfString(bytes, at)
      const isName = bytes[skipSpace(bytes, next)] === COLON
      if (isName && bytes.subarray(at, next).includes(BACKSLASH)) return null
      isOpen = !isName && !isType
      isType = isName && TYPE.equals(bytes.subarray(at, next))
    } else if (isNumberStart(bytes[at])) {
      next = endOfNumber(bytes, at)
      isOpen = endOfCount(bytes, at) === next
    } else next = at + 1
    if (isOpen) {
      starts.push(at)
      ends.push(next)
    }
  }
  return { starts, ends }
}

/** Returns the byte after the string that begins at `start`, or -1 where there is none that strict JSON allows. */
function endOfString(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) return -1
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) return endOfEscaped(bytes, start)
    if (byte < SPACE) return -1
  }
  return -1
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
  while (end < bytes.length && isDigit(bytes[end])) end++
  const digits = end - start
  return digits === 0 || digits > MAX_COUNT_DIGITS || (digits > 1 && bytes[start] === ZERO) ? -1 : end
}

function isNumberStart(byte: number | undefined): boolean {
  return byte === MINUS || isDigit(byte)
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}
