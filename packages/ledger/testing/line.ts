import { lineRoom, sealLine } from '../format.ts'

/** Returns the line of a record as text, including LF, and its hash. */
export function lineOf(prev: string, rec: string, seq: number): { readonly hash: string; readonly text: string } {
  const buffer = Buffer.alloc(lineRoom(rec))
  const { hash, end } = sealLine({ buffer, at: 0, prev }, rec, seq)
  return { hash, text: buffer.toString('utf8', 0, end) }
}
