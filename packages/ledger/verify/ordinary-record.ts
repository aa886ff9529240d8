const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const COLON = 0x3a
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const FIRST_PRINTABLE = 0x20
const FIRST_OUTSIDE_ASCII = 0x80

/** Every integer of so many digits is a double, and canonical as it is written. */
const MAX_DIGITS = 15
const MAX_DEPTH = 32
/** The only form of these characters in canonical JSON. */
const ESCAPED = new Set(Buffer.from('"\\bfnrt'))
const LITERALS = ['null', 'true', 'false'].map((text) => Buffer.from(text))
/** Members that every record has, as strings. */
const REQUIRED = ['at', 'kind'].map((text) => Buffer.from(text))
/** Returned instead of an offset for text that this scan does not know to be canonical. */
const UNKNOWN = -1

/**
 * Returns whether the bytes from `start` to `end` are certainly a canonical record (RFC 8785) with `kind` and `at`, in one pass and without creating
 * a value. False does not mean that it is not one: fractions, rare escapes, names outside ASCII and deep nesting are left to the caller. The bytes
 * must be UTF-8.
 */
export function isOrdinaryRecord(bytes: Buffer, start: number, end: number): boolean {
  const scan = new RecordScan(bytes)
  return scan.record(start) === end && scan.required === REQUIRED.length
}

/** Methods take the offset of the first byte of something, and return the one after its last byte, or `UNKNOWN`. */
class RecordScan {
  /** Number of the members of the record that are required and are strings. */
  required = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  record(start: number): number {
    return this.#bytes[start] === OPEN_OBJECT ? this.#object(start, 0) : UNKNOWN
  }

  #value(start: number, depth: number): number {
    const first = this.#bytes[start] ?? 0
    if (first === QUOTE) return this.#string(start)
    if (first === OPEN_OBJECT) return this.#object(start, depth)
    if (first === OPEN_LIST) return this.#list(start, depth)
    return first === MINUS || isDigit(first) ? this.#integer(start) : this.#literal(start)
  }

  #object(start: number, depth: number): number {
    const bytes = this.#bytes
    if (depth > MAX_DEPTH) return UNKNOWN
    if (bytes[start + 1] === CLOSE_OBJECT) return start + 2
    let before = UNKNOWN
    for (let at = start + 1; ; at++) {
      const colon = this.#name(at)
      if (colon === UNKNOWN || bytes[colon] !== COLON) return UNKNOWN
      if (before !== UNKNOWN && !this.#isBefore(before, at)) return UNKNOWN
      if (depth === 0 && bytes[colon + 1] === QUOTE && this.#isRequired(at, colon)) this.required++
      before = at
      at = this.#value(colon + 1, depth + 1)
      if (at === UNKNOWN) return UNKNOWN
      if (bytes[at] === CLOSE_OBJECT) return at + 1
      if (bytes[at] !== COMMA) return UNKNOWN
    }
  }

  #list(start: number, depth: number): number {
    const bytes = this.#bytes
    if (depth > MAX_DEPTH) return UNKNOWN
    if (bytes[start + 1] === CLOSE_LIST) return start + 2
    for (let at = start + 1; ; at++) {
      at = this.#value(at, depth + 1)
      if (at === UNKNOWN) return UNKNOWN
      if (bytes[at] === CLOSE_LIST) return at + 1
      if (bytes[at] !== COMMA) return UNKNOWN
    }
  }

  #string(start: number): number {
    const bytes = this.#bytes
    for (let at = start + 1; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte === QUOTE) return at + 1
      if (byte < FIRST_PRINTABLE) return UNKNOWN
      if (byte === BACKSLASH && !ESCAPED.has(bytes[++at] ?? 0)) return UNKNOWN
    }
    return UNKNOWN
  }

  /** A name of ASCII characters without escapes: the order of its bytes is that of its UTF-16 code units. */
  #name(start: number): number {
    const bytes = this.#bytes
    if (bytes[start] !== QUOTE) return UNKNOWN
    for (let at = start + 1; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte === QUOTE) return at + 1
      if (byte < FIRST_PRINTABLE || byte >= FIRST_OUTSIDE_ASCII || byte === BACKSLASH) return UNKNOWN
    }
    return UNKNOWN
  }

  /** Returns whether the name at one offset sorts before the one at another; false where they are equal. */
  #isBefore(one: number, other: number): boolean {
    const bytes = this.#bytes
    for (let at = 1; ; at++) {
      const [a, b] = [bytes[one + at] ?? 0, bytes[other + at] ?? 0]
      if (b === QUOTE) return false
      if (a === QUOTE) return true
      if (a !== b) return a < b
    }
  }

  #isRequired(name: number, colon: number): boolean {
    return REQUIRED.some((text) => text.length === colon - name - 2 && this.#has(name + 1, text))
  }

  #integer(start: number): number {
    const bytes = this.#bytes
    const first = bytes[start] === MINUS ? start + 1 : start
    let at = first
    while (at - first <= MAX_DIGITS && isDigit(bytes[at])) at++
    const isCanonical = at - first === 1 ? bytes[first] !== DIGIT_0 || first === start : bytes[first] !== DIGIT_0
    return at > first && at - first <= MAX_DIGITS && isCanonical ? at : UNKNOWN
  }

  #literal(start: number): number {
    const literal = LITERALS.find((text) => this.#has(start, text))
    return literal === undefined ? UNKNOWN : start + literal.length
  }

  #has(at: number, text: Buffer): boolean {
    for (let index = 0; index < text.length; index++) if (this.#bytes[at + index] !== text[index]) return false
    return true
  }
}

function isDigit(byte = 0): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9
}
