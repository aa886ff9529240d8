import { Slices } from '@plat/core'
import { MAX_LINE_BYTES } from './format.ts'

/** Reads bytes at a position; returns 0 at the end. */
export interface ReadAt {
  read(target: Uint8Array, position: number): number | Promise<number>
}

/** Read size. The buffer holds a chunk and the longest line that may have begun before it. */
const CHUNK_BYTES = 1024 * 1024
/** Lines between two checks of the time: a chunk has fewer records, but up to a million line breaks. */
const LINES_AT_ONCE = 4096
const LF = 0x0a

export interface ScanOptions {
  /** Offset to start at, the start of a line; default 0. */
  readonly from?: number
  /** Buffer to read into (`scanBuffer`); default: one that no other scan uses. */
  readonly buffer?: Buffer
  /**
   * Called for each line that has its LF, which `end` excludes. `offset` is the position of the line in the file. The buffer ends with the bytes that
   * were read, and is valid only during the call. Returning false stops the scan.
   */
  onLine(buffer: Buffer, start: number, end: number, offset: number): boolean
  /** Called after each chunk with the bytes read so far. */
  onProgress?(bytes: number): void
}

/** The bytes after the last LF, or after the line at which the scan stopped. */
export interface Rest {
  /** Offset in the file of the first byte that no accepted line covers. */
  readonly offset: number
  /** Bytes after the last LF; empty when the file ends with one, or when the scan was stopped. */
  readonly tail: Buffer
  readonly stopped: boolean
  /** A line longer than `MAX_LINE_BYTES` begins at `offset`. */
  readonly tooLong: boolean
}

/** Allocates a buffer for repeated scans. */
export function scanBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(CHUNK_BYTES + MAX_LINE_BYTES)
}

/** The buffer of a scan that has ended. A new one for each small file would make the garbage collector mark the whole heap again and again. */
let spare: WeakRef<Buffer> | null = null

/** Passes every line of a file to `onLine` in order, without copying; yields to the event loop after each `LINES_AT_ONCE` and after slow chunks. */
export async function scanLines(source: ReadAt, options: ScanOptions): Promise<Rest> {
  if (options.buffer !== undefined) return scanInto(options.buffer, source, options)
  const buffer = spare?.deref() ?? scanBuffer()
  spare = null
  const rest = await scanInto(buffer, source, options)
  spare = new WeakRef(buffer)
  return rest
}

async function scanInto(buffer: Buffer, source: ReadAt, options: ScanOptions): Promise<Rest> {
  let position = options.from ?? 0
  let length = 0
  let lines = 0
  const slices = new Slices()
  for (;;) {
    const count = await source.read(buffer.subarray(length, length + CHUNK_BYTES), position)
    if (count === 0) break
    if (slices.isOver) await slices.next()
    const end = length + count
    // A search of the whole buffer would pass over all of its unused memory after each short read.
    const filled = buffer.subarray(0, end)
    const base = position - length
    let start = 0
    for (let lf = filled.indexOf(LF, length); lf !== -1; lf = filled.indexOf(LF, start)) {
      if (!options.onLine(filled, start, lf, base + start)) {
        return { offset: base + start, tail: Buffer.alloc(0), stopped: true, tooLong: false }
      }
      start = lf + 1
      if (++lines % LINES_AT_ONCE === 0 && slices.isOver) await slices.next()
    }
    position += count
    length = end - start
    if (length > MAX_LINE_BYTES) return { offset: base + start, tail: Buffer.alloc(0), stopped: true, tooLong: true }
    buffer.copyWithin(0, start, end)
    options.onProgress?.(position)
  }
  return { offset: position - length, tail: Buffer.from(buffer.subarray(0, length)), stopped: false, tooLong: false }
}
