import { scanBuffer } from './lines.ts'
import { scanPresent } from './sequence/scan.ts'
import { readSegmentLine } from './sequence/segment-record.ts'
import { ArchivedError, LedgerSequence } from './sequence/sequence.ts'
import { readLine, type TailLine } from './tail.ts'
import type { RecordPlace } from './types.ts'

export interface ReadLimits {
  /** Last record to read: the last durable one. */
  readonly upTo: number
  readonly count: number
  /** Maximum bytes of lines; the first line may exceed it. */
  readonly bytes: number
}

/**
 * Reads the records of a ledger in order while another part of the process writes it, each time those after the taken ones. Lines are not verified.
 */
export class LedgerReader {
  readonly #path: string
  readonly #sequence: LedgerSequence
  /** Allocated on demand. */
  #buffer: Buffer | null = null
  /** Offset after the last taken record. */
  #position: number

  private constructor(path: string, sequence: LedgerSequence, position: number) {
    this.#path = path
    this.#sequence = sequence
    this.#position = position
  }

  /**
   * Resumes after record `after`, or starts at the first one with null; passes over segments that left. Throws when the ledger does not contain this
   * exact record: it is another ledger, or was restored to an older state. In a segment that left, only its last record can be checked.
   */
  static async open(path: string, after: RecordPlace | null): Promise<LedgerReader> {
    const sequence = await LedgerSequence.open(path)
    try {
      if (after === null) return new LedgerReader(path, sequence, 0)
      const found = await lineOrSegment(sequence, after.seq)
      if (found !== null && 'bytes' in found) {
        const last = readSegmentLine(Buffer.from(found.record))?.place
        if (last?.seq === after.seq && last.hash !== after.hash) throw notThere(path, after)
        return new LedgerReader(path, sequence, found.offset + found.bytes)
      }
      if (found === null || readLine(found.line.toString(), path, found.position).hash !== after.hash) {
        throw notThere(path, after)
      }
      return new LedgerReader(path, sequence, found.position + found.line.length + 1)
    } catch (error) {
      await sequence.close()
      throw error
    }
  }

  /** Returns the next records, the same ones until they are taken. Throws on a malformed line. */
  async next({ upTo, count, bytes }: ReadLimits): Promise<readonly ReadLine[]> {
    const lines: ReadLine[] = []
    this.#buffer ??= scanBuffer()
    const rest = await scanPresent(this.#sequence, {
      from: this.#position,
      buffer: this.#buffer,
      onLine: (buffer, start, end, offset) => {
        const line = readLine(buffer.toString('utf8', start, end), this.#path, offset)
        const next = offset + end - start + 1
        if (line.seq > upTo || (lines.length > 0 && next - this.#position > bytes)) return false
        lines.push({ ...line, end: next })
        return lines.length < count
      },
    })
    if (rest.tooLong) throw new Error(`${this.#path}: byte ${rest.offset} begins no record; the line is too long`)
    return lines
  }

  /** Marks this record and those before it as taken. */
  take(line: ReadLine): void {
    this.#position = line.end
  }

  close(): Promise<void> {
    return this.#sequence.close()
  }
}

function notThere(path: string, { seq, hash }: RecordPlace): Error {
  return new Error(`${path} does not hold record ${seq} with hash ${hash}`)
}

/** Returns the line of a record, or its segment if that left. */
async function lineOrSegment(sequence: LedgerSequence, seq: number) {
  try {
    return await sequence.lineOf(seq)
  } catch (error) {
    if (error instanceof ArchivedError) return error.segment
    throw error
  }
}

/** A line and where the next one begins. */
export interface ReadLine extends TailLine {
  /** Offset after its LF. */
  readonly end: number
}
