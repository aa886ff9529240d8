import { Slices } from '@plat/core'
import type { Span } from '../find.ts'
import { MAX_LINE_BYTES } from '../format.ts'
import { ArchivedError, type LedgerSequence } from '../sequence/sequence.ts'

const CHUNK_BYTES = 256 * 1024
const LF = 0x0a

/** Called for each line without its LF, with its position. Returning false stops the scan. */
export type SeeLine = (line: Buffer, offset: number) => boolean

/**
 * Passes the lines of a ledger to `onLine` from the end of the span on. Segments that left are passed over, and so are bytes after the last LF. A
 * file is not read further before a line that is too long.
 */
export async function scanBackward(sequence: LedgerSequence, { from, to }: Span, onLine: SeeLine): Promise<void> {
  const { parts } = sequence
  for (const [index, part] of [...parts.entries()].reverse()) {
    const partEnd = parts[index + 1]?.offset ?? to
    const span = { from: Math.max(from, part.offset), to: Math.min(to, partEnd) }
    if (span.from >= span.to || part.leftUpTo !== null) continue
    try {
      if (!(await scanSpan(sequence, span, onLine))) return
    } catch (error) {
      if (!(error instanceof ArchivedError)) throw error
    }
  }
}

/** Scans lines of one file. Returns false when `onLine` stopped it. */
async function scanSpan(sequence: LedgerSequence, { from, to }: Span, onLine: SeeLine): Promise<boolean> {
  const slices = new Slices()
  // Begins before the last block, and ends with an LF unless the file does not.
  let carry: Buffer = Buffer.alloc(0)
  for (let end = to; end > from; ) {
    const start = Math.max(from, end - CHUNK_BYTES)
    const bytes = Buffer.alloc(end - start)
    const count = await sequence.read(bytes, start)
    const block = Buffer.concat([bytes.subarray(0, count), carry])
    const firstLine = start === from ? 0 : block.indexOf(LF) + 1
    let lineEnd = block.lastIndexOf(LF)
    while (lineEnd >= firstLine) {
      const lineStart = lineEnd === 0 ? 0 : block.lastIndexOf(LF, lineEnd - 1) + 1
      if (!onLine(block.subarray(lineStart, lineEnd), start + lineStart)) return false
      if (slices.isOver) await slices.next()
      lineEnd = lineStart - 1
    }
    carry = firstLine === 0 ? block : Buffer.from(block.subarray(0, firstLine))
    if (carry.length > MAX_LINE_BYTES + CHUNK_BYTES) return true
    end = start
  }
  return true
}
