import type { FileHandle } from 'node:fs/promises'

/** Read size for a single line: most lines are shorter. */
const LINE_BYTES = 4096
const LF = 0x0a
const SEQ = /"seq":(\d{1,16}),"v":1\}$/
/** Length of the end of a line that contains its `seq`. */
const SEQ_BYTES = 40

/** Returns the `seq` stated in a line (without LF); null when it is not a ledger line. Verifies nothing. */
export function seqOf(line: Buffer): number | null {
  const found = SEQ.exec(line.toString('latin1', Math.max(0, line.length - SEQ_BYTES)))?.[1]
  return found === undefined ? null : Number(found)
}

/**
 * Returns the offset of the first complete line for which `isReached` is true, given that it is true for all later lines; the file size when there
 * is none. Binary search, one line per step.
 */
export async function firstLine(file: FileHandle, isReached: (line: Buffer) => boolean): Promise<number> {
  const { size } = await file.stat()
  let [low, high, found] = [0, size, size]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const start = middle === low ? low : await nextStart(file, middle)
    const line = start >= high ? null : await lineAt(file, start)
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

/** Returns the offset of record `seq`, or of the first one after it; the file size when there is none. */
export function offsetOf(file: FileHandle, seq: number): Promise<number> {
  return firstLine(file, (line) => (seqOf(line) ?? -1) >= seq)
}

/** Returns the line at `start` without its LF; null when it has none. */
export async function lineAt(file: FileHandle, start: number): Promise<Buffer | null> {
  for (let span = LINE_BYTES; ; span *= 4) {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(span), 0, span, start)
    const end = buffer.subarray(0, bytesRead).indexOf(LF)
    if (end !== -1) return buffer.subarray(0, end)
    if (bytesRead < span) return null
  }
}

/** Returns the line of record `seq`; null when it does not exist. */
export async function lineOfSeq(file: FileHandle, seq: number): Promise<Buffer | null> {
  const line = await lineAt(file, await offsetOf(file, seq))
  return line !== null && seqOf(line) === seq ? line : null
}

/** Returns the first offset at or after `from` at which a line begins. */
async function nextStart(file: FileHandle, from: number): Promise<number> {
  const block = Buffer.allocUnsafe(LINE_BYTES)
  for (let at = from - 1; ; at += LINE_BYTES) {
    const { bytesRead } = await file.read(block, 0, LINE_BYTES, at)
    const end = block.subarray(0, bytesRead).indexOf(LF)
    if (end !== -1) return at + end + 1
    if (bytesRead < LINE_BYTES) return at + bytesRead
  }
}
