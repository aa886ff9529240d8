import type { FileHandle } from 'node:fs/promises'
import { MAX_LINE_BYTES } from './format.ts'
import type { ReadAt } from './lines.ts'

/** Read size for a single line: most lines are shorter. */
const LINE_BYTES = 4096
const LF = 0x0a
const SEQ = /"seq":(\d{1,16}),"v":1\}$/
/** Length of the end of a line that contains its `seq`. */
const SEQ_BYTES = 40

/** Positions of a source: `from` is the start of a line, and `to` is the end of one. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** Returns an open file as a source of bytes. */
export function readerOf(file: FileHandle): ReadAt {
  return { read: async (target, position) => (await file.read(target, 0, target.length, position)).bytesRead }
}

/** Returns the `seq` stated in a line (without LF); null when it is not a ledger line. Verifies nothing. */
export function seqOf(line: Buffer): number | null {
  const found = SEQ.exec(line.toString('latin1', Math.max(0, line.length - SEQ_BYTES)))?.[1]
  return found === undefined ? null : Number(found)
}

/**
 * Returns the offset of the first complete line in the span for which `isReached` is true, given that it is true for all later lines; the end of the
 * span when there is none. Binary search, one line per step.
 */
export async function firstLine(source: ReadAt, span: Span, isReached: (line: Buffer) => boolean): Promise<number> {
  let [low, high, found] = [span.from, span.to, span.to]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const start = middle === low ? low : await nextStart(source, middle, high)
    const line = start >= high ? null : await lineAt(source, start)
    if (line === null) {
      high = middle
    } else if (isReached(line)) {
      found = start
      high = middle
    } else {
      low = start + line.length + 1
    }
  }
  return found
}

/** Returns the line at `start` without its LF; null when it has none, or is longer than a record: damage must not fill the memory. */
export async function lineAt(source: ReadAt, start: number): Promise<Buffer | null> {
  for (let span = LINE_BYTES; ; span *= 4) {
    const buffer = Buffer.allocUnsafe(span)
    const count = await source.read(buffer, start)
    const end = buffer.subarray(0, count).indexOf(LF)
    if (end !== -1) return buffer.subarray(0, end)
    if (count < span || span > MAX_LINE_BYTES) return null
  }
}

/** Returns the last line of a source of `bytes`, without its LF; null when it has none, or is longer than a record. */
export async function lastLine(source: ReadAt, bytes: number): Promise<Buffer | null> {
  for (let span = LINE_BYTES; ; span *= 4) {
    const start = Math.max(0, bytes - span)
    const block = Buffer.allocUnsafe(bytes - start)
    // A compressed file is read frame by frame.
    for (let got = 0; got < block.length; ) {
      const count = await source.read(block.subarray(got), start + got)
      if (count === 0) return null
      got += count
    }
    if (block.at(-1) !== LF) return null
    const line = block.subarray(0, -1)
    const before = line.lastIndexOf(LF)
    if (before !== -1 || start === 0) return line.subarray(before + 1)
    if (span > MAX_LINE_BYTES) return null
  }
}

/**
 * Returns the first offset at or after `from` at which a line begins, or `end` when none begins before it, or within the length of a record: damage
 * must not cost a read of the whole file.
 */
async function nextStart(source: ReadAt, from: number, end: number): Promise<number> {
  const block = Buffer.allocUnsafe(LINE_BYTES)
  for (let at = from - 1; at < Math.min(end, from + MAX_LINE_BYTES); at += LINE_BYTES) {
    const count = await source.read(block.subarray(0, Math.min(LINE_BYTES, end - at)), at)
    const lf = block.subarray(0, count).indexOf(LF)
    if (lf !== -1) return at + lf + 1
    if (count === 0) return end
  }
  return end
}

/** Read size when searching the last lines. */
const BLOCK_BYTES = 64 * 1024

/** Returns the offset of the last `count` complete lines of the span; with 0 the end of the last one. */
export async function startOfLast(source: ReadAt, count: number, { from, to }: Span): Promise<number> {
  const block = Buffer.alloc(BLOCK_BYTES)
  // Skips the LF of the last line and `count` more; the line starts after the one before.
  for (let missing = count + 1, end = to; end > from; ) {
    const start = Math.max(from, end - BLOCK_BYTES)
    const bytes = await source.read(block.subarray(0, end - start), start)
    for (let at = bytes - 1; at >= 0; at--) {
      if (block[at] === LF && --missing === 0) return start + at + 1
    }
    end = start
  }
  return from
}
