import { promisify } from 'node:util'
import { constants, zstdCompress } from 'node:zlib'
import type { StoredChunk } from '@plat/state'
import { Chain } from '../chain.ts'
import { MAX_LINE_BYTES } from '../format.ts'
import { decompressed } from '../sequence/compressed-file.ts'
import { WINDOW_LOG } from '../sequence/frame-table.ts'

/** Usual limit of the lines of a chunk, in bytes: a longer line is a chunk alone. */
export const CHUNK_BYTES = 256 * 1024
/** The longest line with its LF. */
const MAX_CHUNK_BYTES = MAX_LINE_BYTES + 1
const LF = 0x0a

const compress = promisify(zstdCompress)

/** A copy of a ledger is not what was written: the database was changed. The message names the record. */
export class CopyDamagedError extends Error {}

export function compressChunk(lines: Buffer): Promise<Buffer> {
  // A reader refuses larger windows.
  return compress(lines, { params: { [constants.ZSTD_c_windowLog]: WINDOW_LOG } })
}

/**
 * Returns the lines of a stored chunk, of which every hash was verified, and that they are the records it states. Throws CopyDamagedError. Costs no more
 * than the largest chunk, whatever the bytes are.
 */
export async function openChunk(chunk: StoredChunk): Promise<Buffer> {
  const { first, last, prev, hash, bytes, data } = chunk
  if (bytes < 1 || bytes > MAX_CHUNK_BYTES) throw damaged(chunk, `it states ${bytes} bytes`)
  const lines = await decompressed(data, bytes)
  if (typeof lines === 'string') throw damaged(chunk, `it cannot be decompressed (${lines})`)
  if (lines.length !== bytes || lines.at(-1) !== LF) throw damaged(chunk, 'it is not of the stated size')
  const chain = new Chain(first === 0 ? null : { seq: first - 1, hash: prev })
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(LF, start)
    const line = chain.follow(lines, start, end)
    if ('kind' in line) throw new CopyDamagedError(`record ${chain.next}: ${line.what}`)
    start = end + 1
  }
  if (chain.head?.seq !== last || chain.head.hash !== hash) throw damaged(chunk, 'it ends with another record')
  return lines
}

function damaged({ first, last }: StoredChunk, what: string): CopyDamagedError {
  return new CopyDamagedError(`records ${first} to ${last}: ${what}`)
}
