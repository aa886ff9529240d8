import type { ClaimKind } from './claim-table.ts'

/** Each occurs in every line of a record of this kind; none can occur inside a string. */
const MARKS = (['checkpoint', 'anchor', 'segment'] satisfies readonly ClaimKind[]).map((kind) =>
  Buffer.from(`"kind":"${kind}"`),
)
const SHORTEST = Math.min(...MARKS.map(({ length }) => length))
const PAIRS = 65_536

/**
 * How far a search may advance, by the two bytes that it sees at the end of a window of `SHORTEST` bytes (Wu and Manber): 0 only where a mark may
 * begin with the window. One pass over the bytes finds all marks and looks at one pair of bytes in ten.
 */
const ADVANCE = new Uint8Array(PAIRS).fill(SHORTEST - 1)
for (const mark of MARKS) {
  for (let end = 1; end < SHORTEST; end++) {
    const pair = mark.readUInt16BE(end - 1)
    ADVANCE[pair] = Math.min(ADVANCE[pair] ?? 0, SHORTEST - 1 - end)
  }
}

/** Finds the lines of one scan that may be records with claims. */
export class MarkFinder {
  /** Offset in the file of the start of the buffer. */
  #base = -1
  /** Position in the buffer of the next occurrence of any mark. */
  #next = 0

  /** Parameters as of `onLine` of a scan. Caller must pass all lines in order. */
  has(buffer: Buffer, start: number, end: number, offset: number): boolean {
    // The scan moves the bytes of its buffer after each chunk.
    if (this.#base !== offset - start || this.#next < start) {
      this.#base = offset - start
      this.#next = nextMark(buffer, start)
    }
    return this.#next < end
  }
}

/** Returns the position of the first mark from `start` on; the length of the buffer without one. */
export function nextMark(buffer: Buffer, start: number): number {
  const last = buffer.length - SHORTEST
  for (let at = start; at <= last; ) {
    const end = at + SHORTEST
    const advance = ADVANCE[((buffer[end - 2] ?? 0) << 8) | (buffer[end - 1] ?? 0)] ?? 0
    if (advance === 0 && MARKS.some((mark) => begins(buffer, at, mark))) return at
    at += advance || 1
  }
  return buffer.length
}

function begins(buffer: Buffer, at: number, mark: Buffer): boolean {
  for (let index = 0; index < mark.length; index++) if (buffer[at + index] !== mark[index]) return false
  return true
}
