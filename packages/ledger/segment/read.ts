import { readRawLine } from '../format.ts'
import { scanBuffer, scanLines } from '../lines.ts'
import { LedgerSequence } from '../sequence/sequence.ts'

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
    await using sequence = await LedgerSequence.open(this.#path)
    const start = await sequence.startOf(from)
    const limit = Math.min(maxRecords, upTo - from + 1)
    let [records, size, prev, head] = [0, 0, '', '']
    let wrong: string | null = null
    await scanLines(sequence, {
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
    if (records === 0 && start >= (await sequence.size())) throw new Error(`the ledger file has no record ${from}`)
    const bytes = Buffer.allocUnsafeSlow(size)
    if ((await sequence.read(bytes, start)) < size) {
      throw new Error('the ledger file became shorter while it was read')
    }
    return { bytes, records, prev, head }
  }

  /** Returns the hash of a record; null when it does not exist. */
  async hashOf(seq: number): Promise<string | null> {
    await using sequence = await LedgerSequence.open(this.#path)
    const line = (await sequence.lineOf(seq))?.line
    const read = line === undefined ? null : readRawLine(line, 0, line.length)
    return read === null || typeof read === 'string' ? null : read.hash
  }
}
