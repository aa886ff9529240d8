import { type Head, MAX_LINE_BYTES } from '../format.ts'
import { scanLines } from '../lines.ts'
import { type FollowedLine, readFollowedLine } from './entry-line.ts'
import type { FollowedChain, FollowFault } from './followed-chain.ts'
import type { Part } from './open-parts.ts'

/** Bytes that are read first for one line: most are short. */
const SHORT_LINE_BYTES = 16 * 1024
const LF = 0x0a

/** A byte of a part. */
export interface LinePlace {
  readonly index: number
  readonly from: number
}

export interface Walk {
  readonly chain: FollowedChain
  /** Bytes after which the walk pauses. */
  readonly maxBytes: number
}

export interface Walked {
  readonly fault: FollowFault | null
  /** The walk paused before the end. */
  readonly hasMore: boolean
}

/** Follows the lines from `start` on. `onLine` is called with each and its offset in its part; returning false ends the walk. */
export async function walkParts(
  parts: readonly Part[],
  start: LinePlace,
  { chain, maxBytes }: Walk,
  onLine: (line: FollowedLine, offset: number) => boolean,
): Promise<Walked> {
  let left = maxBytes
  let fault: FollowFault | null = null
  for (const [index, part] of parts.entries()) {
    if (index < start.index) continue
    const rest = await scanLines(part, {
      from: index === start.index ? start.from : 0,
      onLine(buffer, begin, end, offset) {
        if (left <= 0) return false
        left -= end - begin + 1
        const line = chain.follow(buffer, begin, end)
        if ('kind' in line) fault = line
        return 'kind' in line ? false : onLine(line, offset)
      },
    })
    const next = (chain.head?.seq ?? -1) + 1
    if (rest.tooLong) fault = { kind: 'broken', what: `record ${next}: the line is too long` }
    if (rest.tail.length > 0 && index < parts.length - 1) {
      fault = { kind: 'broken', what: `record ${next}: ${part.path} ends within its line` }
    }
    if (fault !== null || rest.stopped) return { fault, hasMore: left <= 0 }
  }
  return { fault: null, hasMore: false }
}

/** Returns the place after the line with this record, which begins at `offset` of one of the parts; null when none has it there. */
export async function findLine(parts: readonly Part[], record: Head, offset: number): Promise<LinePlace | null> {
  for (const [index, part] of parts.entries()) {
    const line = await readLineAt(part, offset)
    if (line?.hash === record.hash) return { index, from: line.end }
  }
  return null
}

/** Returns the valid line that begins at `offset`, with the offset of the next one; null when there is none. */
export async function readLineAt(part: Part, offset: number): Promise<(Head & { readonly end: number }) | null> {
  for (const bytes of [SHORT_LINE_BYTES, MAX_LINE_BYTES + 1]) {
    if (offset >= part.size) return null
    const buffer = Buffer.alloc(bytes)
    const length = await part.read(buffer, offset)
    const lf = buffer.subarray(0, length).indexOf(LF)
    if (lf === -1) continue
    const line = readFollowedLine(buffer, 0, lf)
    return typeof line === 'string' ? null : { seq: line.seq, hash: line.hash, end: offset + lf + 1 }
  }
  return null
}
