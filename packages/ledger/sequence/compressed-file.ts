import { constants, zstdDecompress } from 'node:zlib'
import { reasonOf } from '@plat/core'
import type { SourceFile, SourceFiles } from './files.ts'
import { type FrameTable, readFrameTable, TABLE_END_BYTES, tableBytesOf, WINDOW_LOG } from './frame-table.ts'
import { SegmentDamagedError } from './segment-list-error.ts'

/** Ending of a compressed segment. */
export const COMPRESSED = '.zst'

/** Decompressed frames kept: a line may lie in two of them. */
const FRAMES_KEPT = 2

/** Opens a file of a ledger for reading, decompressed if its name says so. Returns null when it does not exist. Throws SegmentDamagedError. */
export async function openSource(path: string, files: SourceFiles): Promise<SourceFile | null> {
  const file = await files.open(path)
  if (file === null || !path.endsWith(COMPRESSED)) return file
  try {
    return await CompressedFile.open(path, file)
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * A compressed segment as the bytes of its lines: zstd frames of a bounded size, and a table of them at the end, so that a read costs the frames that
 * it needs. A frame that would become larger than its entry states is refused before it has more memory than that.
 */
export class CompressedFile implements SourceFile {
  readonly #path: string
  readonly #file: SourceFile
  readonly #table: FrameTable
  /** The frames used last, the latest at the end. */
  readonly #frames = new Map<number, Promise<Buffer>>()

  private constructor(path: string, file: SourceFile, table: FrameTable) {
    this.#path = path
    this.#file = file
    this.#table = table
  }

  /** `file` is closed with the returned one. Throws SegmentDamagedError when it has no valid table. */
  static async open(path: string, file: SourceFile): Promise<CompressedFile> {
    const size = await file.size()
    const end = await bytesAt(path, file, Math.max(0, size - TABLE_END_BYTES), Math.min(size, TABLE_END_BYTES))
    const length = tableBytesOf(end, size)
    const table = length === null ? null : readFrameTable(await bytesAt(path, file, size - length, length), size)
    if (table === null) {
      throw new SegmentDamagedError(path, 'is damaged: it does not end with a valid table of its frames')
    }
    return new CompressedFile(path, file, table)
  }

  size(): number {
    return this.#table.size
  }

  /** Reads from one frame: returns fewer bytes than requested at its end. */
  async read(target: Uint8Array, position: number): Promise<number> {
    const index = this.#table.indexAt(position)
    if (index === -1) return 0
    const frame = await this.#frame(index)
    return frame.copy(target, 0, position - this.#table.entry(index).plainStart)
  }

  async close(): Promise<void> {
    this.#frames.clear()
    await this.#file.close()
  }

  async #frame(index: number): Promise<Buffer> {
    const frame = this.#frames.get(index) ?? this.#decompress(index)
    this.#frames.delete(index)
    this.#frames.set(index, frame)
    for (const oldest of this.#frames.keys()) {
      if (this.#frames.size <= FRAMES_KEPT) break
      this.#frames.delete(oldest)
    }
    try {
      return await frame
    } catch (error) {
      if (this.#frames.get(index) === frame) this.#frames.delete(index)
      throw error
    }
  }

  async #decompress(index: number): Promise<Buffer> {
    const { start, bytes, plainBytes } = this.#table.entry(index)
    const compressed = await bytesAt(this.#path, this.#file, start, bytes)
    const plain = await decompressed(compressed, plainBytes)
    if (typeof plain !== 'string' && plain.length === plainBytes) return plain
    const what = typeof plain === 'string' ? plain : `it has ${plain.length} bytes instead of ${plainBytes}`
    throw new SegmentDamagedError(
      this.#path,
      `is damaged at bytes ${start} to ${start + bytes}: a frame cannot be decompressed (${what})`,
    )
  }
}

/** Returns the bytes, or why there are none. Uses the thread pool. */
export function decompressed(bytes: Buffer, plainBytes: number): Promise<Buffer | string> {
  const options = {
    maxOutputLength: plainBytes,
    chunkSize: Math.max(plainBytes, MIN_CHUNK_BYTES),
    // Else a frame could state a window of 128 MiB, for which memory is allocated.
    params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG },
  }
  return new Promise((resolve) =>
    zstdDecompress(bytes, options, (error, plain) => resolve(error === null ? plain : reasonOf(error))),
  )
}

const MIN_CHUNK_BYTES = 64

async function bytesAt(path: string, file: SourceFile, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  for (let got = 0; got < length; ) {
    const count = await file.read(bytes.subarray(got), position + got)
    if (count === 0) throw new SegmentDamagedError(path, 'became shorter while it was read')
    got += count
  }
  return bytes
}
