import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { MAX_WATCHED_BYTES, PACKED_SUFFIX, unpack } from '@plat/config'
import { type Members, member, textOf } from '@plat/kubernetes'

/** Bytes of a ConfigMap: the API server refuses a larger one (docs/spec/gateway.md, "Limits"). */
export const CONFIG_MAP_BYTES = 1024 * 1024
/** A file of more bytes is compressed: below it, people can read the ConfigMap. */
const PLAIN_BYTES = 512 * 1024

const compress = promisify(gzip)

/** One rendered file as a ConfigMap holds it. */
export interface PackedFile {
  readonly member: 'data' | 'binaryData'
  readonly key: string
  /** In base64 where it is `binaryData`. */
  readonly text: string
  /** Size that counts towards the limit. */
  readonly bytes: number
  /** Bytes of the text before compression. */
  readonly plainBytes: number
}

/** A small file as it is; a larger one compressed, under `<key>.gz` in `binaryData`. The same text always gives the same bytes. */
export async function packFile(key: string, text: string): Promise<PackedFile> {
  const bytes = Buffer.byteLength(text)
  if (bytes <= PLAIN_BYTES) return { member: 'data', key, text, bytes, plainBytes: bytes }
  const packed = await compress(text)
  const coded = packed.toString('base64')
  return { member: 'binaryData', key: key + PACKED_SUFFIX, text: coded, bytes: packed.length, plainBytes: bytes }
}

/** Whether a ConfigMap holds the file, and a gateway reads it. */
export function isWithinLimits({ bytes, plainBytes }: Pick<PackedFile, 'bytes' | 'plainBytes'>): boolean {
  return bytes <= CONFIG_MAP_BYTES && plainBytes <= MAX_WATCHED_BYTES
}

/** Room that a text takes in a ConfigMap when it is compressed, in bytes; more where it is nearer to what a gateway reads. */
export async function roomOf(text: string): Promise<number> {
  const ofPlain = (Buffer.byteLength(text) / MAX_WATCHED_BYTES) * CONFIG_MAP_BYTES
  return Math.max((await compress(text)).length, Math.ceil(ofPlain))
}

/** Reads the file that `packFile` wrote to a ConfigMap; empty if absent. Rejects if it is damaged or too large. */
export async function readPacked(configMap: Members, key: string): Promise<string> {
  const packed = textOf(member(configMap, 'binaryData'), key + PACKED_SUFFIX)
  if (packed === '') return textOf(member(configMap, 'data'), key)
  return (await unpack(Buffer.from(packed, 'base64'), MAX_WATCHED_BYTES)).toString()
}
