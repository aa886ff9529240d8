import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Ids and randomness come from an injected source, so that every test can own them. */
export interface Ids {
  /** UUIDv7 (RFC 9562): sorts by time; 36 characters, lower case. */
  uuid(): string
  /** Unpredictable bytes, for secrets and nonces. */
  random(bytes: number): Uint8Array
}

/** Randomness is drawn in blocks: one system call serves 256 ids. */
const BLOCK_BYTES = 4096
const RANDOM_BYTES_OF_UUID = 10

/** The machine's randomness with the time of `clock`. */
export function systemIds(clock: Clock): Ids {
  let block = Buffer.alloc(0)
  let used = 0
  let at = Number.NaN
  let time = ''
  return {
    uuid() {
      if (used + RANDOM_BYTES_OF_UUID > block.length) {
        block = randomBytes(BLOCK_BYTES)
        used = 0
      }
      used += RANDOM_BYTES_OF_UUID
      const now = clock.now()
      if (now !== at) {
        at = now
        time = timeOf(now)
      }
      return time + restOf(block.toString('hex', used - RANDOM_BYTES_OF_UUID, used))
    },
    random: (bytes) => randomBytes(bytes),
  }
}

/** A UUIDv7's 48 bits of time and its version. Ids of one millisecond share them. */
function timeOf(now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
}

const VARIANTS = '89ab'

/** A UUIDv7's variant and 74 random bits: 20 hex digits, six bits unused. */
function restOf(random: string): string {
  const variant = VARIANTS[Number.parseInt(random[3] ?? '0', 16) & 0x3]
  return `${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** Lower-case base32 (RFC 4648 alphabet, no padding). */
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
