import { lineRoom, sealLine } from '../format.ts'

/** The line of a record as a text, LF included, and its hash. */
export function lineOf(prev: string, rec: string, seq: number): { readonly hash: string; readonly text: string } {
  const buffer = Buffer.alloc(lineRoom(rec))
  const { hash, end } = sealLine({ buffer, at: 0, prev }, rec, seq)
  return { hash, text: buffer.toString('utf8', 0, end) }
}
