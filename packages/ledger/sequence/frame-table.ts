/**
 * The table at the end of a compressed segment: the "seekable format" of zstd, a skippable frame that every decompressor passes over.
 *
 * `5e 2a 4d 18`, u32 size of the rest; for each frame u32 compressed and u32 plain size; u32 number of frames, a byte of flags (0), `b1 ea 92 8f`.
 * Numbers are little-endian.
 */
const HEADER_MAGIC = 0x184d2a5e
const END_MAGIC = 0x8f92eab1
const HEADER_BYTES = 8
const ENTRY_BYTES = 8
export const TABLE_END_BYTES = 9

/** Maximum size of a frame before compression, 256 KiB: what a read of one line costs. */
export const FRAME_BYTES = 256 * 1024
/** The same, as the exponent of zstd's window. */
export const WINDOW_LOG = 18
/** More than any frame of that size has when it is compressed. */
const MAX_COMPRESSED_BYTES = FRAME_BYTES + 8 * 1024
/** Maximum number of frames: segments of 256 GiB. */
const MAX_FRAMES = 1024 * 1024

export interface FrameEntry {
  /** Position and size in the file. */
  readonly start: number
  readonly bytes: number
  /** The same, decompressed. */
  readonly plainStart: number
  readonly plainBytes: number
}

export interface FrameSizes {
  readonly bytes: number
  readonly plainBytes: number
}

export class FrameTable {
  /** Positions of all frames, and of the end. */
  readonly #starts: Float64Array
  readonly #plainStarts: Float64Array

  constructor(starts: Float64Array, plainStarts: Float64Array) {
    this.#starts = starts
    this.#plainStarts = plainStarts
  }

  /** Total size, decompressed. */
  get size(): number {
    return this.#plainStarts.at(-1) ?? 0
  }

  /** Returns the frame that has this position of the decompressed bytes, by binary search; -1 when none has it. */
  indexAt(position: number): number {
    if (position < 0 || position >= this.size) return -1
    let [low, high] = [0, this.#plainStarts.length - 2]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#plainStarts[middle] ?? 0) <= position) low = middle
      else high = middle - 1
    }
    return low
  }

  entry(index: number): FrameEntry {
    const [start = 0, end = 0] = this.#starts.subarray(index, index + 2)
    const [plainStart = 0, plainEnd = 0] = this.#plainStarts.subarray(index, index + 2)
    return { start, bytes: end - start, plainStart, plainBytes: plainEnd - plainStart }
  }
}

/** Returns the size of the table by the last bytes of a file of `fileBytes`; null when they are not the end of one. */
export function tableBytesOf(end: Buffer, fileBytes: number): number | null {
  if (end.length !== TABLE_END_BYTES || end.readUInt32LE(5) !== END_MAGIC || end[4] !== 0) return null
  const frames = end.readUInt32LE(0)
  const bytes = HEADER_BYTES + frames * ENTRY_BYTES + TABLE_END_BYTES
  return frames > 0 && frames <= MAX_FRAMES && bytes <= fileBytes ? bytes : null
}

/** Parses a whole table, the end of a file of `fileBytes`. Returns null when it is malformed or does not describe exactly that file. */
export function readFrameTable(table: Buffer, fileBytes: number): FrameTable | null {
  const frames = (table.length - HEADER_BYTES - TABLE_END_BYTES) / ENTRY_BYTES
  if (table.readUInt32LE(0) !== HEADER_MAGIC || table.readUInt32LE(4) !== table.length - HEADER_BYTES) return null
  const starts = new Float64Array(frames + 1)
  const plainStarts = new Float64Array(frames + 1)
  let [start, plainStart] = [0, 0]
  for (let index = 0; index < frames; index++) {
    const at = HEADER_BYTES + index * ENTRY_BYTES
    const [bytes, plainBytes] = [table.readUInt32LE(at), table.readUInt32LE(at + 4)]
    if (bytes === 0 || bytes > MAX_COMPRESSED_BYTES || plainBytes === 0 || plainBytes > FRAME_BYTES) return null
    start += bytes
    plainStart += plainBytes
    starts[index + 1] = start
    plainStarts[index + 1] = plainStart
  }
  return start === fileBytes - table.length ? new FrameTable(starts, plainStarts) : null
}

/** Returns the table of a file of these frames. Throws when there are too many. */
export function writeFrameTable(frames: readonly FrameSizes[]): Buffer {
  if (frames.length > MAX_FRAMES)
    throw new Error(`a segment of more than ${MAX_FRAMES * FRAME_BYTES} bytes cannot be compressed`)
  const table = Buffer.alloc(HEADER_BYTES + frames.length * ENTRY_BYTES + TABLE_END_BYTES)
  table.writeUInt32LE(HEADER_MAGIC, 0)
  table.writeUInt32LE(table.length - HEADER_BYTES, 4)
  for (const [index, { bytes, plainBytes }] of frames.entries()) {
    table.writeUInt32LE(bytes, HEADER_BYTES + index * ENTRY_BYTES)
    table.writeUInt32LE(plainBytes, HEADER_BYTES + index * ENTRY_BYTES + 4)
  }
  table.writeUInt32LE(frames.length, table.length - TABLE_END_BYTES)
  table.writeUInt32LE(END_MAGIC, table.length - 4)
  return table
}
