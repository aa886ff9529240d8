import type { Damage } from '../chain.ts'
import type { Head } from '../format.ts'

/** Results of a verification with their exit codes, which scripts depend on. */
export const EXIT_CODES = { valid: 0, usage: 2, broken: 3, torn: 4, unproven: 4, forked: 5, truncated: 6 } as const

/** Sealed segments whose files left, adjacent ones with the same fate as one entry each. */
export interface ArchivedRecords {
  readonly first: number
  readonly last: number
  /** Where they were archived; null when they were deleted. */
  readonly archive: string | null
}

export interface Finding {
  readonly verdict: Exclude<keyof typeof EXIT_CODES, 'usage'>
  readonly exitCode: number
  /** One or two sentences for people. */
  readonly message: string
  readonly ledgerId: string | null
  /** Number of valid records, from the first on; those of segments that left included. */
  readonly records: number
  readonly bytes: number
  /** Last valid record. */
  readonly head: Head | null
  readonly checkpoints: { readonly found: number; readonly signed: number }
  /** Anchored checkpoints, and those confirmed by a given key of the log. */
  readonly anchors: {
    readonly found: number
    readonly signed: number
    /** Last record covered by the latest of them, and the log; null without one. */
    readonly last: { readonly upTo: number; readonly url: string } | null
  }
  /** Number of records that no signature covers; null when no key was given. */
  readonly unproven: number | null
  /** Segments that were not read because they left: the chain continues after the `segment` record of the last of them. */
  readonly archived: readonly ArchivedRecords[]
  /** Place of the first problem; null without one, or when records are missing at the end. */
  readonly place: (Pick<Damage, 'line' | 'seq' | 'offset' | 'what'> & { readonly path: string }) | null
}

/** A named file cannot be used: exit code 2. */
export class VerifyUsageError extends Error {}
