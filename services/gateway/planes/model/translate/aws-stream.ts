import { crc32 } from 'node:zlib'
import { ByteBuffer } from '@plat/core'
import { InvalidResponseError } from '../invalid.ts'

/** One message of an AWS event stream. */
export interface AwsMessage {
  /** Headers whose value is text; others are skipped. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Uint8Array
}

/** Total length, length of the headers, and the checksum of both, in bytes. */
const PRELUDE_BYTES = 12
/** Bytes of a message without headers and payload: the prelude, and the checksum of the message. */
const AROUND_BYTES = PRELUDE_BYTES + 4
/** Largest headers and payload of a message, in bytes, as AWS limits them. */
const MAX_HEADERS_BYTES = 128 * 1024
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024 + MAX_HEADERS_BYTES + AROUND_BYTES
/** The length of a message comes first, in four bytes. */
const LENGTH_BYTES = 4

/**
 * Splits the bytes of an AWS event stream (`application/vnd.amazon.eventstream`) into messages, however they were cut. A length that
 * cannot be, or a checksum that is wrong, throws `InvalidResponseError`: what follows could be anything.
 */
export class AwsStreamSplitter {
  readonly #bytes = new ByteBuffer()
  /** Bytes until there is something to look at: a length, or a whole message. */
  #wanted = PRELUDE_BYTES

  push(chunk: Uint8Array): AwsMessage[] {
    this.#bytes.append(chunk)
    if (this.#bytes.size < this.#wanted) return []
    const buffered = this.#bytes.take()
    let bytes: Buffer = Buffer.from(buffered.buffer, buffered.byteOffset, buffered.length)
    const messages: AwsMessage[] = []
    this.#wanted = wantedOf(bytes)
    while (bytes.length >= this.#wanted) {
      messages.push(messageOf(bytes.subarray(0, this.#wanted)))
      bytes = bytes.subarray(this.#wanted)
      this.#wanted = wantedOf(bytes)
    }
    this.#bytes.append(bytes)
    return messages
  }

  /** Whether a message has begun that never came to its end. */
  get isTorn(): boolean {
    return this.#bytes.size > 0
  }
}

/** How many bytes the message at the beginning has, once its prelude is there. */
function wantedOf(bytes: Buffer): number {
  if (bytes.length < PRELUDE_BYTES) return PRELUDE_BYTES
  const total = bytes.readUInt32BE(0)
  const headers = bytes.readUInt32BE(LENGTH_BYTES)
  if (crc32(bytes.subarray(0, PRELUDE_BYTES - 4)) !== bytes.readUInt32BE(PRELUDE_BYTES - 4))
    throw new InvalidResponseError('a prelude of an AWS event stream with a wrong checksum')
  if (total > MAX_MESSAGE_BYTES || headers > MAX_HEADERS_BYTES || total < AROUND_BYTES + headers)
    throw new InvalidResponseError('a message of an AWS event stream with an impossible length')
  return total
}

function messageOf(bytes: Buffer): AwsMessage {
  const end = bytes.length - 4
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end))
    throw new InvalidResponseError('a message of an AWS event stream with a wrong checksum')
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(LENGTH_BYTES)
  return { headers: headersOf(bytes.subarray(PRELUDE_BYTES, headersEnd)), payload: bytes.subarray(headersEnd, end) }
}

/** Bytes of a header's value by its type; types 6 and 7 say their length themselves, in two bytes. */
const FIXED: ReadonlyMap<number, number> = new Map([
  [0, 0],
  [1, 0],
  [2, 1],
  [3, 2],
  [4, 4],
  [5, 8],
  [8, 8],
  [9, 16],
])
const BYTES_TYPE = 6
const TEXT_TYPE = 7

function headersOf(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new InvalidResponseError('a header of an AWS event stream that does not end')
    at += count
    return bytes.subarray(at - count, at)
  }
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString('utf8')
    const type = take(1).readUInt8()
    const fixed = FIXED.get(type)
    if (fixed === undefined && type !== BYTES_TYPE && type !== TEXT_TYPE)
      throw new InvalidResponseError('a header of an AWS event stream with an unknown type')
    const value = take(fixed ?? take(2).readUInt16BE())
    if (type === TEXT_TYPE) headers.set(name, value.toString('utf8'))
  }
  return headers
}
