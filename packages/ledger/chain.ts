import { type Head, type RawLine, readRawLine, ZERO_HASH } from './format.ts'
import { type ReadAt, scanLines } from './lines.ts'

/** The first problem of a ledger, and its place. */
export interface Damage {
  readonly kind: 'broken' | 'forked'
  /** From 1. */
  readonly line: number
  /** Number of the record expected here. */
  readonly seq: number
  /** Offset in the file at which the line begins. */
  readonly offset: number
  readonly what: string
}

/** A problem before its place is known. */
export type ChainProblem = Pick<Damage, 'kind' | 'what'>

/** Verifies the chain line by line. */
export class Chain {
  #head: Head | null
  #previous: Head | null

  /** `head`: the record before the next line; null at the beginning of a ledger. `previous`: the one before it, if known. */
  constructor(head: Head | null, previous: Head | null = null) {
    this.#head = head
    this.#previous = previous
  }

  get head(): Head | null {
    return this.#head
  }

  /** The record before `head`, if it is known. */
  get previous(): Head | null {
    return this.#previous
  }

  /** Expected `seq` of the next line. */
  get next(): number {
    return this.#head === null ? 0 : this.#head.seq + 1
  }

  /** Goes on after this record: those up to it are not here. */
  skipTo(head: Head): void {
    this.#head = head
    this.#previous = null
  }

  /** Verifies the next line; returns it, or its problem. */
  follow(buffer: Buffer, start: number, end: number): RawLine | ChainProblem {
    const prev = this.#head?.hash ?? ZERO_HASH
    const line = readRawLine(buffer, start, end, prev)
    if (typeof line === 'string') return { kind: 'broken', what: line }
    if (line.seq !== this.next || line.prev !== prev) return this.#explain(line)
    this.#previous = this.#head
    this.#head = line
    return line
  }

  /** The line is valid, but not the expected one. */
  #explain(line: RawLine): ChainProblem {
    const expected = this.next
    if (line.hash === this.#head?.hash) return { kind: 'broken', what: `record ${line.seq} is listed twice` }
    if (line.seq === this.#head?.seq && line.prev === (this.#previous?.hash ?? ZERO_HASH)) {
      return { kind: 'forked', what: `a second record ${line.seq} follows record ${line.seq - 1}: two histories` }
    }
    if (line.seq > expected) {
      const missing = line.seq === expected + 1 ? `record ${expected} is` : `records ${expected} to ${line.seq - 1} are`
      return { kind: 'broken', what: `found record ${line.seq}: ${missing} missing or out of place` }
    }
    if (line.seq < expected) return { kind: 'broken', what: `record ${line.seq} is repeated or out of place` }
    return { kind: 'broken', what: `it does not follow the record before it: "prev" is not that record's hash` }
  }
}

/** Result of following a chain to its end. */
export interface Followed {
  readonly head: Head | null
  /** Offset of the last record's line. */
  readonly headOffset: number
  readonly lines: number
  /** Number of bytes of valid lines that have their LF. */
  readonly offset: number
  readonly damage: Damage | null
  /** Bytes after the last LF. */
  readonly tail: Buffer
  /** The tail is the whole next record without its LF. */
  readonly tailComplete: boolean
}

export interface FollowOptions {
  readonly source: ReadAt
  readonly chain: Chain
  readonly from?: number
  /** Called with every valid line, at `start` of the buffer and at `offset` of the file; may return a problem. */
  onRecord?(buffer: Buffer, start: number, line: RawLine, offset: number): ChainProblem | null
  onProgress?(bytes: number): void
}

/** Reads the raw bytes of a ledger from `from` and verifies its chain up to the first damage or the end. */
export async function followChain(options: FollowOptions): Promise<Followed> {
  const { source, chain } = options
  let lines = 0
  let headOffset = 0
  let damage: Damage | null = null
  const take = (buffer: Buffer, start: number, end: number, offset: number): boolean => {
    const seq = chain.next
    const line = chain.follow(buffer, start, end)
    const wrong = 'kind' in line ? line : (options.onRecord?.(buffer, start, line, offset) ?? null)
    if (wrong === null) {
      lines++
      headOffset = offset
    } else {
      damage = { ...wrong, line: lines + 1, seq, offset }
    }
    return wrong === null
  }
  const rest = await scanLines(source, {
    from: options.from ?? 0,
    onLine: take,
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
  })
  if (rest.tooLong) {
    damage = { kind: 'broken', line: lines + 1, seq: chain.next, offset: rest.offset, what: 'the line is too long' }
  }
  const { tail, offset } = rest
  const readable = tail.length > 0 && typeof readRawLine(tail, 0, tail.length) !== 'string'
  const tailComplete = readable && take(tail, 0, tail.length, offset)
  return { head: chain.head, headOffset, lines, offset, damage, tail, tailComplete }
}
