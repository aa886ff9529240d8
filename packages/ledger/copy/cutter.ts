import { basename } from 'node:path'
import { isObject } from '@plat/core'
import { Chain } from '../chain.ts'
import { lineAt } from '../find.ts'
import { type Head, MAX_LINE_BYTES, ZERO_HASH } from '../format.ts'
import { type LedgerSegment, segmentPath } from '../sequence/segment-entry.ts'
import { readSegmentLine, type SegmentLine } from '../sequence/segment-record.ts'
import { ArchivedError, LedgerSequence } from '../sequence/sequence.ts'
import { CHUNK_BYTES } from './chunk.ts'

const LF = 0x0a

/** Whole lines that follow a record, or a sealed segment that left. */
export interface CutChunk {
  readonly first: number
  readonly last: number
  /** Hash of the record before, and of the last one. */
  readonly prev: string
  readonly hash: string
  readonly position: number
  readonly bytes: number
  /** Null: the records left. */
  readonly lines: Buffer | null
  /** The sealed segment that it ends, as a copy lists it; null when it ends none. */
  readonly segment: LedgerSegment | null
}

/** The end of a copy: its last record, and the position after it. */
export interface CopyEnd {
  readonly seq: number
  readonly hash: string
  readonly bytes: number
}

/** The ledger does not continue the copy. */
export class NotContinuedError extends Error {}

/** Name of the ledger file in a copy. */
export const COPY_NAME = 'audit.jsonl'

/** Cuts a ledger in use into chunks for a copy, each time those after the taken ones. The chain is verified. */
export class ChunkCutter {
  readonly #path: string
  readonly #sequence: LedgerSequence
  #end: CopyEnd

  private constructor(path: string, sequence: LedgerSequence, end: CopyEnd) {
    this.#path = path
    this.#sequence = sequence
    this.#end = end
  }

  static async open(path: string, end: CopyEnd): Promise<ChunkCutter> {
    return new ChunkCutter(path, await LedgerSequence.open(path), end)
  }

  /** The record after which the next chunk begins. */
  get end(): CopyEnd {
    return this.#end
  }

  /**
   * Returns the next chunk with records up to `upTo`, the last durable one, or null when there is none; the same one until it is taken. Throws
   * NotContinuedError when the next record does not follow the end, or is damaged.
   */
  async next(upTo: number): Promise<CutChunk | null> {
    if (this.#end.seq >= upTo) return null
    for (let size = CHUNK_BYTES; ; size = MAX_LINE_BYTES + 1) {
      const found = await this.#cut(size, upTo)
      if (found !== 'longer') return found
      if (size > MAX_LINE_BYTES) throw this.#broken('the line is too long')
    }
  }

  take({ last, hash, position, bytes }: CutChunk): void {
    this.#end = { seq: last, hash, bytes: position + bytes }
  }

  close(): Promise<void> {
    return this.#sequence.close()
  }

  async #cut(size: number, upTo: number): Promise<CutChunk | 'longer' | null> {
    const { seq, hash, bytes: position } = this.#end
    const block = Buffer.allocUnsafe(size)
    let count: number
    try {
      count = await this.#sequence.read(block, position)
    } catch (error) {
      if (!(error instanceof ArchivedError)) throw error
      return this.#left(error.segment)
    }
    const chain = new Chain(seq === -1 ? null : { seq, hash })
    let end = 0
    let sealed: SegmentLine | null = null
    while (sealed === null && chain.next <= upTo) {
      const lf = block.subarray(0, count).indexOf(LF, end)
      if (lf === -1) break
      const line = chain.follow(block, end, lf)
      if ('kind' in line) throw this.#broken(line.what)
      sealed = readSegmentLine(block.subarray(end, lf))
      end = lf + 1
    }
    if (end === 0) return count === size ? 'longer' : null
    const { head } = chain
    if (head === null) return null
    const chunk = { ...placeOf(this.#end, head), position, bytes: end }
    const record = sealed === null ? '' : block.toString('utf8', startOfLast(block, end), end - 1)
    const segment = sealed === null ? null : await this.#segment(sealed, record, position + end)
    return { ...chunk, lines: block.subarray(0, end), segment }
  }

  /** A segment that left before it was copied is listed. */
  #left(segment: LedgerSegment): CutChunk {
    const { first, last, bytes, offset, record } = segment
    const head = readSegmentLine(Buffer.from(record))?.place ?? null
    if (first !== this.#end.seq + 1 || offset !== this.#end.bytes || head?.seq !== last) {
      throw new NotContinuedError(
        `${this.#path}: records ${this.#end.seq + 1} to ${last} left the ledger before they were copied`,
      )
    }
    return { ...placeOf(this.#end, head), position: offset, bytes, lines: null, segment: listed(segment) }
  }

  async #segment({ first, place }: SegmentLine, record: string, end: number): Promise<LedgerSegment> {
    const offset = await this.#sequence.startOf(first)
    const begin = await lineAt(this.#sequence, offset)
    return listed({
      ...{ first, last: place.seq, bytes: end - offset, offset },
      ...{ from: timeIn(begin?.toString() ?? ''), to: timeIn(record), record },
      ...{ checkpoint: null, file: '', archive: null, left: null },
    })
  }

  #broken(what: string): NotContinuedError {
    return new NotContinuedError(`${this.#path}: record ${this.#end.seq + 1} and later ones cannot be copied: ${what}`)
  }
}

/** Returns an entry with the name that its file has in a copy. */
export function listed(segment: LedgerSegment): LedgerSegment {
  const file = segment.left !== null ? null : basename(segmentPath(COPY_NAME, segment.first))
  return { ...segment, file }
}

function placeOf({ seq, hash }: CopyEnd, head: Head) {
  return { first: seq + 1, last: head.seq, prev: seq === -1 ? ZERO_HASH : hash, hash: head.hash }
}

function startOfLast(block: Buffer, end: number): number {
  return block.lastIndexOf(LF, end - 2) + 1
}

function timeIn(line: string): string {
  const value: unknown = JSON.parse(line)
  return isObject(value) && isObject(value.rec) && typeof value.rec.at === 'string' ? value.rec.at : ''
}
