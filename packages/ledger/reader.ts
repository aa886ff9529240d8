import { type FileHandle, open } from 'node:fs/promises'
import { lineOfSeq, offsetOf } from './find.ts'
import { type ReadAt, scanBuffer, scanLines } from './lines.ts'
import { readLine, type TailLine } from './tail.ts'

/** Limits of one read. */
export interface ReadLimits {
  /** Last record to read: the last durable one. */
  readonly upTo: number
  readonly count: number
  /** Maximum bytes of lines; the first line may exceed it. */
  readonly bytes: number
}

/**
 * Reads the records of a ledger in order while another part of the process writes it, each time those after the taken ones. The file is opened once:
 * a writer never replaces it. Lines are not verified.
 */
export class LedgerReader {
  readonly #path: string
  readonly #file: FileHandle
  readonly #source: ReadAt
  /** Allocated on demand. */
  #buffer: Buffer | null = null
  /** Offset after the last taken record. */
  #position: number

  private constructor(path: string, file: FileHandle, position: number) {
    this.#path = path
    this.#file = file
    this.#source = { read: async (target, at) => (await file.read(target, 0, target.length, at)).bytesRead }
    this.#position = position
  }

  /**
   * Resumes after record `after`, or starts at the first one with null. Throws when the ledger does not contain this exact record: it is another
   * ledger, or was restored to an older state.
   */
  static async open(
    path: string,
    after: { readonly seq: number; readonly hash: string } | null,
  ): Promise<LedgerReader> {
    const file = await open(path, 'r')
    try {
      if (after === null) return new LedgerReader(path, file, 0)
      const line = await lineOfSeq(file, after.seq)
      if (line === null || readLine(line.toString(), path, 0).hash !== after.hash) {
        throw new Error(`${path} does not hold record ${after.seq} with hash ${after.hash}`)
      }
      return new LedgerReader(path, file, (await offsetOf(file, after.seq)) + line.length + 1)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Returns the next records, the same ones until they are taken. Throws on a malformed line. */
  async next({ upTo, count, bytes }: ReadLimits): Promise<readonly ReadLine[]> {
    const lines: ReadLine[] = []
    this.#buffer ??= scanBuffer()
    const rest = await scanLines(this.#source, {
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
    return this.#file.close()
  }
}

/** A line and where the next one begins. */
export interface ReadLine extends TailLine {
  /** Offset after its LF. */
  readonly end: number
}
