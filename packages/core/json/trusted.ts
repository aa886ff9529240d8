import { bufferOf } from './names.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Most strings end within this many bytes; in a longer one a native search for its end pays. */
const SHORT_STRING = 48
/** After an escaped quote, more of them are likely (JSON in a string): so many bytes are read before the next native search. */
const AFTER_ESCAPED_QUOTE = 1024

/**
 * Returns the offset after the string that starts at `at`, of input whose grammar is already known or checked later: the content is not checked.
 * Returns the end of the input when the string is unterminated.
 */
export function skipTrusted(bytes: Uint8Array, at: number): number {
  let next = at + 1
  for (const near = Math.min(next + SHORT_STRING, bytes.length); next < near; next++) {
    const byte = bytes[next]
    if (byte === QUOTE) return next + 1
    if (byte === BACKSLASH) next++
  }
  return skipLong(bufferOf(bytes), next)
}

/** Continues in a string at a byte that no backslash escapes. */
function skipLong(bytes: Buffer, from: number): number {
  let next = from
  for (;;) {
    const quote = bytes.indexOf(QUOTE, next)
    if (quote === -1) return bytes.length
    if (!isEscapedAt(bytes, next, quote)) return quote + 1
    next = quote + 1
    for (const near = Math.min(next + AFTER_ESCAPED_QUOTE, bytes.length); next < near; next++) {
      const byte = bytes[next]
      if (byte === QUOTE) return next + 1
      if (byte === BACKSLASH) next++
    }
  }
}

/** Does an odd number of backslashes stand before this byte? */
function isEscapedAt(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at
  while (first > from && bytes[first - 1] === BACKSLASH) first--
  return (at - first) % 2 === 1
}
