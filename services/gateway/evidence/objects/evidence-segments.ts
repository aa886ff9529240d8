import { readFile } from 'node:fs/promises'
import { type EvidenceHead, type LedgerSegment, recordsOfEvidence } from '@plat/ledger'

/** An evidence object cannot be read, so that the segments with its records are not known: nothing may leave. */
export class EvidenceUnreadableError extends Error {
  constructor(path: string, why: string) {
    super(`${path} is unreadable: ${why}: restore it from a copy, or move it away; nothing leaves`)
  }
}

/** The segments with records of one evidence object. */
export class EvidenceSegments {
  readonly #path: string
  readonly #from: number
  readonly #to: number
  /** First records of the sealed segments with records of the object; null: it has not been read. */
  #firsts: ReadonlySet<number> | null = null
  /** Last record of the segments that were compared. */
  #comparedUpTo = -1

  constructor(path: string, { from, to }: Pick<EvidenceHead, 'from' | 'to'>) {
    this.#path = path
    this.#from = from
    this.#to = to
  }

  /** Reads the object for a segment in its range, once for the segments that are sealed. Rejects with EvidenceUnreadableError. */
  async needs(segment: LedgerSegment, sealed: readonly LedgerSegment[]): Promise<boolean> {
    if (segment.last < this.#from || segment.first > this.#to) return false
    if (this.#firsts === null || segment.last > this.#comparedUpTo) {
      this.#firsts = firstsOf(await this.#records(), sealed)
      this.#comparedUpTo = sealed.at(-1)?.last ?? -1
    }
    return this.#firsts.has(segment.first)
  }

  async #records(): Promise<readonly number[]> {
    const records = await recordsOfEvidence(await readFile(this.#path))
    if (typeof records === 'string') throw new EvidenceUnreadableError(this.#path, records)
    return records
  }
}

/** Both are in order, so that one pass finds the segment of each record. */
function firstsOf(records: readonly number[], sealed: readonly LedgerSegment[]): ReadonlySet<number> {
  const firsts = new Set<number>()
  let at = 0
  for (const seq of records.toSorted((a, b) => a - b)) {
    while (at < sealed.length && (sealed[at]?.last ?? 0) < seq) at++
    const segment = sealed[at]
    if (segment !== undefined && segment.first <= seq) firsts.add(segment.first)
  }
  return firsts
}
