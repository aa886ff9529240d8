import type { PublicKey } from '@plat/keys'
import type { Head } from '../format.ts'
import { isHeadSigned, readHead, type StoredHead } from '../writer/head-file.ts'
import { FollowedChain, type FollowFault } from './followed-chain.ts'
import { type Part, Parts, readHeadFile, UnreadableError } from './open-parts.ts'
import { Reverification } from './reverification.ts'
import { findLine, type LinePlace, readLineAt, walkParts } from './walk-parts.ts'

/** Maximum bytes that one look reads beyond the last one. */
const MAX_NEW_BYTES = 64 * 1024 * 1024
/** Looks after which an unsigned end is a fault. */
const UNSIGNED_LOOKS = 3

/** Position in a followed ledger. */
export interface FollowedPosition {
  /** The first record of the ledger. */
  readonly first: Head
  /** The last record that was verified. */
  readonly head: Head
  /** Offset of its line in its file. */
  readonly offset: number
  /** The last record that a signature of the pinned key covers. */
  readonly signed: Head | null
}

/** Result of reading on in a followed ledger. */
export interface Look {
  /** The record to anchor: the last one, or the last signed one where signatures are required; null for none. */
  readonly head: Head | null
  readonly isSigned: boolean
  /** The ledger began anew since the last anchor. */
  readonly isRestarted: boolean
  /** The first record that was read, of a ledger that is followed from there. */
  readonly first: Head | null
  readonly fault: FollowFault | null
  /** There is more to read at once. */
  readonly hasMore: boolean
}

export interface FollowedFileOptions {
  readonly path: string
  /** The pinned key; null for none. */
  readonly key: PublicKey | null
  readonly requireSigned: boolean
  /** Whether the file may begin anew. */
  readonly allowRestarts: boolean
  /** Whether the file may begin after record 0, as it is first read, and be replaced by one that continues it. */
  readonly continuation: boolean
  /** Position to continue from; null at first. */
  readonly position: FollowedPosition | null
}

/** A position while it advances. */
interface Advance {
  readonly position: FollowedPosition | null
  readonly hasMore: boolean
  readonly isRestarted: boolean
}

/** Follows a ledger file that another program writes, and may replace, truncate or rewrite. */
export class FollowedFile {
  readonly #options: FollowedFileOptions
  readonly #past = new Reverification()
  #position: FollowedPosition | null
  #isRestarted = false
  #unsignedLooks = 0

  constructor(options: FollowedFileOptions) {
    this.#options = options
    this.#position = options.position
  }

  /** Position of the last look without a fault. */
  get position(): FollowedPosition | null {
    return this.#position
  }

  /** Called when the head of the last look is anchored. */
  anchored(): void {
    this.#isRestarted = false
  }

  /** Reads on, and verifies a part of what was read before. Never rejects for what the file contains. */
  async look(): Promise<Look> {
    const found = await this.#read()
    // A file may be renamed between two reads: only a fault that shows again counts.
    const advance = 'kind' in found ? await this.#read() : found
    if ('kind' in advance) return this.#result(advance, false)
    this.#position = advance.position
    this.#isRestarted ||= advance.isRestarted
    return this.#result(advance.hasMore ? null : this.#unsigned(), advance.hasMore)
  }

  #result(fault: FollowFault | null, hasMore: boolean): Look {
    const { requireSigned } = this.#options
    const position = this.#position
    const signed = position?.signed ?? null
    const head = requireSigned ? signed : (position?.head ?? null)
    const isSigned = head !== null && signed !== null && signed.seq >= head.seq
    return { head, isSigned, isRestarted: this.#isRestarted, first: position?.first ?? null, fault, hasMore }
  }

  /** The writer may sign later than it writes. */
  #unsigned(): FollowFault | null {
    const position = this.#position
    const isSigned = position === null || position.head.seq === position.signed?.seq
    if (!this.#options.requireSigned) return null
    this.#unsignedLooks = isSigned ? 0 : this.#unsignedLooks + 1
    if (isSigned || position === null || (position.signed !== null && this.#unsignedLooks < UNSIGNED_LOOKS)) return null
    const after = position.signed === null ? 'no record is' : `no record after ${position.signed.seq} is`
    return {
      kind: 'unsigned',
      what: `${after} signed by the pinned key; the ledger ends at record ${position.head.seq}`,
    }
  }

  async #read(): Promise<Advance | FollowFault> {
    const { path } = this.#options
    try {
      const stated = await readHeadFile(path)
      await using parts = await Parts.open(path, this.#position?.head.seq ?? 0)
      const start = await this.#start(parts.all)
      if ('kind' in start) return start
      const advance = await this.#advance(parts.all, start, stated)
      if ('kind' in advance || advance.position === null || advance.isRestarted) return advance
      return (await this.#past.next(path, advance.position)) ?? advance
    } catch (error) {
      if (error instanceof UnreadableError) return { kind: 'unreadable', what: error.message }
      throw error
    }
  }

  async #start(parts: readonly Part[]): Promise<Start | FollowFault> {
    const position = this.#position
    if (position === null) return { index: 0, from: 0, position, isRestarted: false }
    const place = await findLine(parts, position.head, position.offset)
    return place === null ? this.#lost(position, parts) : { ...place, position, isRestarted: false }
  }

  /** The last record that was read is no longer where it was. */
  async #lost(position: FollowedPosition, parts: readonly Part[]): Promise<Start | FollowFault> {
    const { path, allowRestarts, continuation } = this.#options
    const { first, head, offset } = position
    const index = parts.length - 1
    const active = parts[index]
    if (active === undefined || active.size === 0) {
      return { kind: 'truncated', what: `${path} is empty, but record ${head.seq} was read before` }
    }
    const found = await readLineAt(active, 0)
    if (found === null) return { kind: 'broken', what: `${path} does not begin with a record` }
    if (found.hash === first.hash) {
      return active.size <= offset
        ? { kind: 'truncated', what: `it ends before record ${head.seq}, which was read before` }
        : { kind: 'forked', what: `record ${head.seq} is not the one that was read before` }
    }
    if (found.seq === 0 && allowRestarts) return { index, from: 0, position: null, isRestarted: true }
    if (found.seq === head.seq + 1 && continuation) return { index, from: 0, position, isRestarted: false }
    if (found.seq > head.seq + 1) {
      return {
        kind: 'gap',
        what: `${path} begins with record ${found.seq}: records from ${head.seq + 1} on are missing`,
      }
    }
    return { kind: 'replaced', what: `${path} begins with another record ${found.seq} than before` }
  }

  /** Follows the lines from `start` to the end, or as far as one look may. */
  async #advance(parts: readonly Part[], start: Start, text: string | null): Promise<Advance | FollowFault> {
    const { path, key, requireSigned, continuation } = this.#options
    const { position, isRestarted } = start
    const stated = text === null ? null : readHead(text)
    if (text !== null && stated === null) return { kind: 'broken', what: `${path}.head is not the head of a ledger` }
    const chain = new FollowedChain(position?.head ?? null, position === null && continuation && !isRestarted)
    let first = position?.first ?? null
    let offset = position?.offset ?? 0
    let statedHash = position?.head.seq === stated?.seq ? position?.head.hash : undefined
    const walked = await walkParts(parts, start, { chain, maxBytes: MAX_NEW_BYTES }, (line, at) => {
      first ??= { seq: line.seq, hash: line.hash }
      offset = at
      if (line.seq === stated?.seq) statedHash = line.hash
      return true
    })
    if (walked.fault !== null) return walked.fault
    const { hasMore } = walked
    const head = chain.head
    if (head === null || first === null) return { position: null, hasMore, isRestarted }
    const fault = stated === null || hasMore ? null : faultOfStated(stated, { path, head, hash: statedHash, key })
    if (fault !== null) return fault
    const signed = key === null ? null : chain.signedBy(key)
    if (signed !== null && 'kind' in signed) return signed
    const isStated =
      stated !== null &&
      statedHash === stated.hash &&
      key !== null &&
      isHeadSigned(stated, { keys: [key], hmacKey: null })
    const covered = lastOf([position?.signed ?? null, signed, isStated ? { seq: stated.seq, hash: stated.hash } : null])
    if (isRestarted && requireSigned && covered === null) {
      return { kind: 'unsigned', what: `${path} begins anew, and no record of it is signed by the pinned key` }
    }
    return { position: { first, head, offset, signed: covered }, hasMore, isRestarted }
  }
}

/** Where to read on: in which part, at which byte, and after which record. */
interface Start extends LinePlace {
  readonly position: FollowedPosition | null
  readonly isRestarted: boolean
}

/** Returns the fault of `<path>.head`, which plat writes after each record is durable. */
function faultOfStated(
  stated: StoredHead,
  { path, head, hash, key }: { path: string; head: Head; hash: string | undefined; key: PublicKey | null },
): FollowFault | null {
  if (key !== null && stated.jws !== null && !isHeadSigned(stated, { keys: [key], hmacKey: null })) {
    return { kind: 'signature', what: `${path}.head is not signed by the pinned key` }
  }
  if (stated.seq > head.seq) {
    return { kind: 'truncated', what: `it ends at record ${head.seq}, but ${path}.head has record ${stated.seq}` }
  }
  // An older head than what was read before cannot be compared.
  if (hash === undefined || hash === stated.hash) return null
  return { kind: 'forked', what: `record ${stated.seq} is not the one in ${path}.head` }
}

function lastOf(heads: readonly (Head | null)[]): Head | null {
  return heads.reduce((last, head) => (head !== null && head.seq >= (last?.seq ?? 0) ? head : last), null)
}
