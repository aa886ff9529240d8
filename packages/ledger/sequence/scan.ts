import { type Rest, type ScanOptions, scanLines } from '../lines.ts'
import { ArchivedError, type LedgerSequence } from './sequence.ts'

/** Passes the lines of a ledger from a position on to `onLine`, as `scanLines` does. Segments that left are passed over. */
export async function scanPresent(sequence: LedgerSequence, options: ScanOptions): Promise<Rest> {
  for (let from = options.from ?? 0; ; ) {
    try {
      return await scanLines(sequence, { ...options, from })
    } catch (error) {
      if (!(error instanceof ArchivedError)) throw error
      from = error.end
    }
  }
}
