const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** `\\u` with four hex digits. */
const LONG_ESCAPE = 6

/** By the byte after a backslash. */
const SHORT_ESCAPES = new Uint8Array(256)
for (const byte of Buffer.from('"\\/')) SHORT_ESCAPES[byte] = byte
for (const [letter, character] of Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }))
  SHORT_ESCAPES[letter.charCodeAt(0)] = character.charCodeAt(0)

/** Most bytes of one character. A target of `unescapeInto` needs so many beyond those of the content. */
export const SPARE_BYTES = 4

/** Result of `unescapeInto`. */
export const TOO_LONG = -1

/**
 * Writes the content of a JSON string in bytes `start` to `end` (without quotes, with valid escapes only) to the begin of `target`, unescaped, and
 * returns its length, or `TOO_LONG` if the target is too small. A lone surrogate is written like other characters, in three bytes that are not
 * UTF-8: different contents have different bytes.
 */
export function unescapeInto(target: Uint8Array, bytes: Uint8Array, start: number, end: number): number {
  const most = target.length - SPARE_BYTES
  let to = 0
  for (let at = start; at < end; ) {
    const byte = bytes[at] ?? 0
    if (to >= most) return TOO_LONG
    if (byte !== BACKSLASH) {
      target[to++] = byte
      at++
    } else if (!isLongEscape(bytes, at)) {
      target[to++] = SHORT_ESCAPES[bytes[at + 1] ?? 0] ?? 0
      at += 2
    } else {
      const unit = unitAt(bytes, at)
      const low = isHigh(unit) && isLongEscape(bytes, at + LONG_ESCAPE) ? unitAt(bytes, at + LONG_ESCAPE) : 0
      at += isLow(low) ? 2 * LONG_ESCAPE : LONG_ESCAPE
      to = write(target, to, isLow(low) ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : unit)
    }
  }
  return to
}

function isLongEscape(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === BACKSLASH && bytes[at + 1] === LOWER_U
}

/** The unit of UTF-16 that the escape at `at` has in hex digits. */
function unitAt(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let next = at + 2; next < at + LONG_ESCAPE; next++) {
    const digit = bytes[next] ?? 0
    unit = (unit << 4) | ((digit & 0x0f) + (digit > 0x39 ? 9 : 0))
  }
  return unit
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

/** Writes a code point as UTF-8 does; returns the offset after it. */
function write(target: Uint8Array, at: number, point: number): number {
  let to = at
  if (point < 0x80) {
    target[to++] = point
    return to
  }
  if (point < 0x800) target[to++] = 0xc0 | (point >> 6)
  else {
    if (point < 0x10000) target[to++] = 0xe0 | (point >> 12)
    else {
      target[to++] = 0xf0 | (point >> 18)
      target[to++] = 0x80 | ((point >> 12) & 0x3f)
    }
    target[to++] = 0x80 | ((point >> 6) & 0x3f)
  }
  target[to++] = 0x80 | (point & 0x3f)
  return to
}
