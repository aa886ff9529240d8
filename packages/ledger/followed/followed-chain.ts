import type { PublicKey } from '@plat/keys'
import { type Head, ZERO_HASH } from '../format.ts'
import { type FollowedLine, readFollowedLine, signedTextOf } from './entry-line.ts'

/** Kinds of faults of a followed ledger. */
export const FOLLOW_FAULTS = [
  /** The ledger cannot be read. */
  'unreadable',
  /** A line is malformed, or its hash is not that of its bytes. */
  'broken',
  /** Records are missing between two lines. */
  'gap',
  /** Another record is at a position that was read before. */
  'forked',
  /** It ends before the last record that was read. */
  'truncated',
  /** It begins with another record than before. */
  'replaced',
  /** A signature is not of the pinned key. */
  'signature',
  /** No signature covers its end. */
  'unsigned',
  /** It does not hold the anchor of the gateway's ledger that its writer confirmed. */
  'unanchored',
] as const

export type FollowFaultKind = (typeof FOLLOW_FAULTS)[number]

/** The first fault of a followed ledger. */
export interface FollowFault {
  readonly kind: FollowFaultKind
  readonly what: string
}

/** Verifies the lines of a ledger that another program writes. */
export class FollowedChain {
  #head: Head | null
  #signed: FollowedLine | null = null
  readonly #beginsLater: boolean

  /** `head`: the record before the next line; null at the beginning. `beginsLater`: then the first line may have any number. */
  constructor(head: Head | null, beginsLater = false) {
    this.#head = head
    this.#beginsLater = beginsLater
  }

  get head(): Head | null {
    return this.#head
  }

  /** Verifies the next line; returns it, or its fault. */
  follow(buffer: Buffer, start: number, end: number): FollowedLine | FollowFault {
    const next = this.#head === null ? 0 : this.#head.seq + 1
    const line = readFollowedLine(buffer, start, end)
    if (typeof line === 'string') return { kind: 'broken', what: `record ${next}: ${line}` }
    const begins = this.#head === null && this.#beginsLater
    if (!begins) {
      if (line.seq > next)
        return { kind: 'gap', what: `record ${line.seq} follows: records from ${next} on are missing` }
      if (line.seq < next) return { kind: 'forked', what: `a second record ${line.seq} follows record ${next - 1}` }
      if (line.prev !== (this.#head?.hash ?? ZERO_HASH)) {
        return { kind: 'forked', what: `record ${line.seq} does not follow the record before it` }
      }
    }
    this.#head = { seq: line.seq, hash: line.hash }
    if (line.signature !== null) this.#signed = line
    return line
  }

  /** Returns the last signed record that was followed, null for none, or the fault of its signature. The chain covers earlier ones. */
  signedBy({ key, algorithm }: PublicKey): Head | FollowFault | null {
    const line = this.#signed
    if (line === null || line.signature === null) return null
    if (algorithm.verify(signedTextOf(line.hash), key, line.signature)) return { seq: line.seq, hash: line.hash }
    return { kind: 'signature', what: `record ${line.seq} is not signed by the pinned key` }
  }
}
