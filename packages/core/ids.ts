import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Source of ids and randomness, injected so that tests can control it. */
export interface Ids {
  /** UUIDv7 (RFC 9562): sorts by time; 36 characters, lower case. */
  uuid(): string
  /** Unpredictable bytes, for secrets and nonces. */
  random(bytes: number): Uint8Array
}

/** Randomness is drawn in blocks: one system call and one string serve this many ids. */
const IDS_OF_BLOCK = 256
const RANDOM_BYTES_OF_UUID = 10
const DIGITS_OF_UUID = RANDOM_BYTES_OF_UUID * 2

/** System randomness with the time of `clock`. */
export function systemIds(clock: Clock): Ids {
  /** Hexadecimal. */
  let block = ''
  let used = 0
  let at = Number.NaN
  let time = ''
  return {
    uuid() {
      if (used === block.length) {
        block = digitsOfBlock()
        used = 0
      }
      used += DIGITS_OF_UUID
      const now = clock.now()
      if (now !== at) {
        at = now
        time = timeOf(now)
      }
      // It is lower case already: this flattens the string that `+` composed. `JSON.stringify` takes twice as long for a record with such a string.
      return (time + restOf(block, used - DIGITS_OF_UUID)).toLowerCase()
    },
    random: (bytes) => randomBytes(bytes),
  }
}

/** Returns the 48 bits of time and the version of a UUIDv7. Ids of one millisecond share them. */
function timeOf(now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
}

/** Returns the hex digits for one block of ids; the fourth of each holds the variant, `10` and two random bits. */
function digitsOfBlock(): string {
  const bytes = randomBytes(IDS_OF_BLOCK * RANDOM_BYTES_OF_UUID)
  for (let at = 1; at < bytes.length; at += RANDOM_BYTES_OF_UUID) bytes[at] = ((bytes[at] ?? 0) & 0xf3) | 0x08
  return bytes.toString('hex')
}

/** Returns the variant and 74 random bits of a UUIDv7, from the digits at `from`. */
function restOf(digits: string, from: number): string {
  return `${digits.slice(from, from + 3)}-${digits.slice(from + 3, from + 7)}-${digits.slice(from + 7, from + 19)}`
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** Encodes as lower-case base32 (RFC 4648 alphabet, no padding). */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32[(value >>> bits) & 31]
    }
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text
}
