import { bufferOf } from './names.ts'

/**
 * Longest number literal in bytes: more digits than any key or amount has. What reads a literal exactly (canonical form, CEL) may take
 * more than linear time in its length.
 */
export const MAX_NUMBER_BYTES = 4096

const COMMA = 0x2c
/** Most number literals end within this many bytes; in a longer one a native search for the comma behind it pays. */
const SHORT_NUMBER = 64

/** By byte: 1 where a number literal may have it. A table, since lists of long numbers have little else. */
const NUMBER_BYTES = new Uint8Array(256)
for (const byte of Buffer.from('0123456789.eE+-')) NUMBER_BYTES[byte] = 1

/** First byte after `at` that no number literal contains, searched as far as a literal of `longest` bytes extends. */
export function endOfNumber(bytes: Uint8Array, at: number, longest = MAX_NUMBER_BYTES): number {
  const last = Math.min(at + longest + 1, bytes.length)
  let next = at + 1
  // Four at a time: one comparison for all of them.
  while (next + 3 < last && areNumberBytes(bytes, next)) next += 4
  while (next < last && isNumberByte(bytes[next])) next++
  return next
}

/** Returns the offset after a number literal of valid JSON, however long. Of other input any offset beyond `at`. */
export function skipTrustedNumber(bytes: Uint8Array, at: number): number {
  const near = endOfNumber(bytes, at, SHORT_NUMBER)
  return near - at > SHORT_NUMBER ? endOfLongNumber(bytes, near) : near
}

/** Of valid JSON, only white space and ends of containers are between a number and the next comma. */
function endOfLongNumber(bytes: Uint8Array, at: number): number {
  const comma = bufferOf(bytes).indexOf(COMMA, at)
  let end = comma === -1 ? bytes.length : comma
  while (end > at && !isNumberByte(bytes[end - 1] ?? 0)) end--
  return end
}

function areNumberBytes(bytes: Uint8Array, at: number): boolean {
  const first = numberBit(bytes[at]) & numberBit(bytes[at + 1])
  return (first & numberBit(bytes[at + 2]) & numberBit(bytes[at + 3])) === 1
}

export function isNumberByte(byte: number | undefined): boolean {
  return numberBit(byte) === 1
}

function numberBit(byte: number | undefined): number {
  return NUMBER_BYTES[byte ?? 0] ?? 0
}
