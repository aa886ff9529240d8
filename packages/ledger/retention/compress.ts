import { dirname, join } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import type { AppendHandle, Files } from '@plat/state'
import { COMPRESSED, CompressedFile } from '../sequence/compressed-file.ts'
import { FRAME_BYTES, type FrameSizes, writeFrameTable } from '../sequence/frame-table.ts'
import type { LedgerSegment } from '../sequence/segment-entry.ts'
import { SegmentListError } from '../sequence/segment-list-error.ts'
import { verifySegment } from '../sequence/verify-segment.ts'

/** Ending of the file that is being written. */
export const UNFINISHED = `${COMPRESSED}.tmp`

/** Compressed bytes per durable write. */
const WRITE_BYTES = 4 * 1024 * 1024

export interface Compression {
  readonly ledgerPath: string
  /** The segment, whose file is not compressed. */
  readonly segment: LedgerSegment
  /** The segment before it; null for the first one. */
  readonly before: LedgerSegment | null
  readonly files: Files
  /** Called between two writes; may wait. */
  readonly onWritten?: () => void
}

/** The compressed lines of a segment are not those that its `segment` record states; its file stays as it is. */
export class SegmentMismatchError extends Error {}

/**
 * Replaces the file of a sealed segment by a compressed one, `<file>.zst`. The order is: compressed file durable, decompressed again and verified
 * against the `segment` record, renamed, plain file removed. So after a crash at least one complete file is there, and a repetition completes it.
 */
export async function compressSegment(compression: Compression): Promise<void> {
  const { ledgerPath, segment, files } = compression
  const plain = join(dirname(ledgerPath), segment.file ?? '')
  const unfinished = `${plain}${UNFINISHED}`
  try {
    files.remove(unfinished)
    writeCompressed(plain, unfinished, compression)
    const problem = await problemOf(unfinished, compression)
    if (problem !== null) throw new SegmentMismatchError(`${plain} is not what was sealed: ${problem}`)
    // An earlier attempt may have ended before the plain file was removed.
    files.remove(`${plain}${COMPRESSED}`)
    files.rename(unfinished, `${plain}${COMPRESSED}`)
  } catch (error) {
    removeQuietly(unfinished, files)
    throw error
  }
  files.remove(plain)
}

function writeCompressed(from: string, to: string, { files, onWritten = () => {} }: Compression): void {
  const source = files.openRead(from)
  try {
    const target = files.openAppend(to)
    try {
      const frames: FrameSizes[] = []
      let waiting: Buffer[] = []
      let waitingBytes = 0
      const buffer = Buffer.allocUnsafe(FRAME_BYTES)
      for (let at = 0; ; ) {
        const plainBytes = fill(buffer, (rest, offset) => source.read(rest, at + offset))
        if (plainBytes === 0) break
        at += plainBytes
        const frame = compressed(buffer.subarray(0, plainBytes))
        frames.push({ bytes: frame.length, plainBytes })
        waiting.push(frame)
        waitingBytes += frame.length
        if (waitingBytes < WRITE_BYTES) continue
        writeAll(target, Buffer.concat(waiting))
        waiting = []
        waitingBytes = 0
        onWritten()
      }
      writeAll(target, Buffer.concat([...waiting, writeFrameTable(frames)]))
    } finally {
      target.close()
    }
  } finally {
    source.close()
  }
}

/** Reads until the buffer is full or nothing is left; returns the number of bytes. */
function fill(buffer: Buffer, read: (rest: Buffer, offset: number) => number): number {
  for (let got = 0; ; ) {
    const count = got === buffer.length ? 0 : read(buffer.subarray(got), got)
    if (count === 0) return got
    got += count
  }
}

function compressed(plain: Buffer): Buffer {
  return zstdCompressSync(plain, {
    // Known in advance, it makes the window of the frame as large as the frame.
    pledgedSrcSize: plain.length,
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
  })
}

/** Higher ones need several times the time and gain less than a tenth. */
const LEVEL = 3

function writeAll(target: AppendHandle, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += target.write(bytes.subarray(written))
}

/** Returns what is wrong with the compressed file, or null. */
async function problemOf(path: string, { segment, before, files }: Compression): Promise<string | null> {
  const file = files.openRead(path)
  try {
    const source = await CompressedFile.open(path, file)
    if (source.size() !== segment.bytes) return `it has ${source.size()} bytes instead of ${segment.bytes}`
    return await verifySegment(source, segment, before)
  } catch (error) {
    if (error instanceof SegmentListError) return error.message
    throw error
  } finally {
    file.close()
  }
}

function removeQuietly(path: string, files: Files): void {
  try {
    files.remove(path)
  } catch {
    // The next attempt removes it.
  }
}
