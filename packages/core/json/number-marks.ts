import { skipSpace } from './check.ts'
import { textOf } from './names.ts'
import { skipTrusted } from './trusted.ts'

/** DEL: may be written in strings of JSON as it is, and hardly ever is. */
export const MARK = 0x7f
const QUOTE = 0x22
const PLUS = 0x2b
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const COMMA = 0x2c
const LOWER_E = 0x65
const BACKSLASH = 0x5c
/** Turns letters of ASCII into lower case. */
const LOWER = 0x20

/** Decimals of so many digits, or fewer, are what the shortest text of their double is. */
const SAFE_DIGITS = 15
/** A double with more zeros behind its point is written with an exponent. */
const MOST_LEADING_ZEROS = 5
/** No double is written in more characters. */
const LONGEST_DOUBLE = 32
/** Fewer bytes are copied faster one by one. */
const SHORT_COPY = 32

/** Where a JSON text has number literals that a double does not write back, and strings that begin with `MARK`. */
export interface Marks {
  /** Start and end of each literal, in order; start twice: a string begins with `MARK` there. */
  readonly places: readonly number[]
  /** How many of them are literals. */
  readonly literals: number
}

const NONE: Marks = { places: [], literals: 0 }

/** Finds the literals that `JSON.stringify` would not write back identically. Texts that are not JSON may have any result. */
export function exactMarks(json: Uint8Array): Marks {
  return new MarkScan(json).marks()
}

class MarkScan {
  readonly #bytes: Uint8Array
  #places: number[] | null = null
  #literals = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  marks(): Marks {
    const bytes = this.#bytes
    let at = 0
    while (at < bytes.length) {
      const byte = bytes[at] ?? 0
      if (byte === QUOTE) at = this.#string(at)
      else if (isDigit(byte)) {
        // One digit, as in a list of small numbers.
        if (bytes[at + 1] === COMMA) {
          at += 2
          continue
        }
        const end = digitsFrom(bytes, at)
        // Most numbers are short and whole.
        at = end - at <= SAFE_DIGITS && !goesOn(bytes[end]) ? end : this.#number(at)
      } else at = byte === MINUS ? this.#number(at) : at + 1
    }
    return this.#places === null ? NONE : { places: this.#places, literals: this.#literals }
  }

  /** Returns where the text goes on behind the string that begins at `quote`. */
  #string(quote: number): number {
    const end = skipTrusted(this.#bytes, quote)
    if (this.#isMarkAt(quote + 1) && !this.#isName(end)) this.#add(quote + 1, quote + 1)
    return end
  }

  #isMarkAt(at: number): boolean {
    const byte = this.#bytes[at]
    if (byte !== BACKSLASH) return byte === MARK
    return textOf(this.#bytes, at + 1, at + 6).toLowerCase() === 'u007f'
  }

  /** Only names are followed by a colon. */
  #isName(end: number): boolean {
    return this.#bytes[skipSpace(this.#bytes, end)] === COLON
  }

  /** Reads as much as belongs to one literal by the grammar; returns the place behind it. */
  #number(start: number): number {
    const bytes = this.#bytes
    const first = bytes[start] === MINUS ? start + 1 : start
    if (!isDigit(bytes[first])) return start + 1
    const whole = bytes[first] === ZERO ? first + 1 : digitsFrom(bytes, first)
    const fraction = bytes[whole] === DOT && isDigit(bytes[whole + 1]) ? digitsFrom(bytes, whole + 1) : whole
    const end = endOfExponent(bytes, fraction)
    const isShort = end === fraction && fraction - first <= SAFE_DIGITS
    const isPlain = isShort ? isShortest(bytes, start, whole, end) : isWrittenBack(bytes, start, end)
    // A number before a colon is invalid: left unchanged, so that parsing refuses it.
    if (!isPlain && !this.#isName(end)) {
      this.#literals++
      this.#add(start, end)
    }
    return end
  }

  #add(start: number, end: number): void {
    this.#places ??= []
    this.#places.push(start, end)
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** Whether a literal goes on behind its whole part. */
function goesOn(byte: number | undefined): boolean {
  return byte === DOT || ((byte ?? 0) | LOWER) === LOWER_E
}

/** The first place behind a digit that is none. */
function digitsFrom(bytes: Uint8Array, at: number): number {
  let next = at + 1
  while (isDigit(bytes[next])) next++
  return next
}

/** The place itself where no exponent is complete. */
function endOfExponent(bytes: Uint8Array, at: number): number {
  if (((bytes[at] ?? 0) | LOWER) !== LOWER_E) return at
  const sign = bytes[at + 1]
  const digit = sign === PLUS || sign === MINUS ? at + 2 : at + 1
  return isDigit(bytes[digit]) ? digitsFrom(bytes, digit) : at
}

/** Whether a short number without exponent, with its point at `point`, is as short as its double is written. */
function isShortest(bytes: Uint8Array, start: number, point: number, end: number): boolean {
  const first = bytes[start] === MINUS ? start + 1 : start
  if (point === end) return first === start || bytes[first] !== ZERO
  if (bytes[end - 1] === ZERO) return false
  if (bytes[first] !== ZERO) return true
  let digit = point + 1
  while (bytes[digit] === ZERO) digit++
  return digit - point - 1 <= MOST_LEADING_ZEROS
}

function isWrittenBack(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > LONGEST_DOUBLE) return false
  const literal = textOf(bytes, start, end)
  return JSON.stringify(Number(literal)) === literal
}

/** The text with each such literal as a string that begins with `MARK`, and one `MARK` more before strings that begin with one. */
export function withMarks(json: Uint8Array, { places, literals }: Marks): string {
  const marked = new Uint8Array(json.length + 2 * literals + places.length / 2)
  let to = 0
  let from = 0
  const copyTo = (end: number) => {
    if (end - from > SHORT_COPY) {
      marked.set(json.subarray(from, end), to)
      to += end - from
    } else for (let at = from; at < end; at++) marked[to++] = json[at] ?? 0
    from = end
  }
  for (let mark = 0; mark < places.length; mark += 2) {
    const start = places[mark] ?? 0
    const end = places[mark + 1] ?? 0
    copyTo(start)
    if (end > start) marked[to++] = QUOTE
    marked[to++] = MARK
    copyTo(end)
    if (end > start) marked[to++] = QUOTE
  }
  copyTo(json.length)
  return textOf(marked, 0, to)
}
