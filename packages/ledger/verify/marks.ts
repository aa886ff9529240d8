import type { ClaimKind } from './claim-table.ts'

/** Each occurs in every line of a record of this kind; none can occur inside a string. */
const MARKS = (['checkpoint', 'anchor', 'segment'] satisfies readonly ClaimKind[]).map((kind) =>
  Buffer.from(`"kind":"${kind}"`),
)

/** Finds the lines of one scan that may be records with claims: searches each chunk once for each mark instead of each line. */
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

function nextMark(buffer: Buffer, start: number): number {
  return Math.min(
    ...MARKS.map((mark) => {
      const at = buffer.indexOf(mark, start)
      return at === -1 ? buffer.length : at
    }),
  )
}
