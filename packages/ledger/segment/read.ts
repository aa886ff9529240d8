import { open } from 'node:fs/promises'
import { lineOfSeq, offsetOf } from '../find.ts'
import { readRawLine } from '../format.ts'
import { type ReadAt, scanBuffer, scanLines } from '../lines.ts'

export interface LinesWanted {
  /** The first record. */
  readonly from: number
  /** The last record to read: later ones may not be durable. */
  readonly upTo: number
  readonly maxRecords: number
  readonly maxBytes: number
}

/** Consecutive ledger lines, each with its LF. */
export interface RawLines {
  readonly bytes: Buffer
  /** 0 when the first one alone exceeds `maxBytes`. */
  readonly records: number
  /** `prev` of the first and `hash` of the last; empty when there are none. */
  readonly prev: string
  readonly head: string
}

/** Reads lines of a ledger repeatedly, at most `maxRecords` and `maxBytes` at a time. */
export class LineReader {
  readonly #path: string
  readonly #buffer = scanBuffer()

  constructor(path: string) {
    this.#path = path
  }

  /** Throws when the file does not contain the expected records from `from` on. */
  async read({ from, upTo, maxRecords, maxBytes }: LinesWanted): Promise<RawLines> {
    await using file = await open(this.#path, 'r')
    const source: ReadAt = {
      read: async (target, position) => (await file.read(target, 0, target.length, position)).bytesRead,
    }
    const start = await offsetOf(file, from)
    const limit = Math.min(maxRecords, upTo - from + 1)
    let [records, size, prev, head] = [0, 0, '', '']
    let wrong: string | null = null
    await scanLines(source, {
      from: start,
      buffer: this.#buffer,
      onLine(buffer, begin, end) {
        const bytes = end - begin + 1
        if (records === limit || size + bytes > maxBytes) return false
        const line = readRawLine(buffer, begin, end)
        if (typeof line === 'string' || line.seq !== from + records || (records > 0 && line.prev !== head)) {
          wrong = `the ledger file no longer holds record ${from + records} as it was written`
          return false
        }
        if (records === 0) prev = line.prev
        head = line.hash
        records++
        size += bytes
        return true
      },
    })
    if (wrong !== null) throw new Error(wrong)
    if (records === 0 && start >= (await file.stat()).size) throw new Error(`the ledger file has no record ${from}`)
    const bytes = Buffer.allocUnsafeSlow(size)
    for (let done = 0; done < size; ) {
      const { bytesRead } = await file.read(bytes, done, size - done, start + done)
      if (bytesRead === 0) throw new Error('the ledger file became shorter while it was read')
      done += bytesRead
    }
    return { bytes, records, prev, head }
  }

  /** Returns the hash of a record; null when it does not exist. */
  async hashOf(seq: number): Promise<string | null> {
    await using file = await open(this.#path, 'r')
    const line = await lineOfSeq(file, seq)
    const read = line === null ? null : readRawLine(line, 0, line.length)
    return read === null || typeof read === 'string' ? null : read.hash
  }
}
