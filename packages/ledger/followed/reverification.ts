import type { Head } from '../format.ts'
import { FollowedChain, type FollowFault } from './followed-chain.ts'
import { Parts } from './open-parts.ts'
import { findLine, walkParts } from './walk-parts.ts'

/** Bytes that one look verifies again. */
const MAX_BYTES = 8 * 1024 * 1024

/** Verifies again what was read before, from the beginning to the last record and then anew, a part at a time. */
export class Reverification {
  #last: (Head & { readonly offset: number }) | null = null

  /** `position`: what is known of the ledger. Throws UnreadableError. */
  async next(path: string, position: { readonly first: Head; readonly head: Head }): Promise<FollowFault | null> {
    const last = this.#last
    await using parts = await Parts.open(path, last?.seq ?? 0)
    const place = last === null ? null : await findLine(parts.all, last, last.offset)
    // A file that was rewritten, or that left, is verified from the beginning.
    const isContinued = last !== null && place !== null
    const chain = new FollowedChain(isContinued ? last : null, true)
    const { first, head } = position
    let fault: FollowFault | null = null
    const walk = { chain, maxBytes: MAX_BYTES }
    const walked = await walkParts(parts.all, place ?? { index: 0, from: 0 }, walk, ({ seq, hash }, offset) => {
      const known = [first, head].find((one) => one.seq === seq)
      if (known !== undefined && known.hash !== hash) {
        fault = { kind: 'forked', what: `record ${seq} is not the one that was read before` }
      }
      this.#last = { seq, hash, offset }
      return fault === null && seq < head.seq
    })
    if (!walked.hasMore) this.#last = null
    return walked.fault ?? fault
  }
}
