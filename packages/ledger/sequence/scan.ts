import { type Rest, type ScanOptions, scanLines } from '../lines.ts'
import type { LedgerSegment } from './segment-entry.ts'
import { ArchivedError, type LedgerSequence } from './sequence.ts'

/**
 * Passes the lines of a ledger from a position on to `onLine`, as `scanLines` does. Segments that left are passed over.
 * @throws ArchivedError for a segment that `mayPass` does not accept
 */
export async function scanPresent(
  sequence: LedgerSequence,
  options: ScanOptions,
  mayPass: (segment: LedgerSegment) => boolean = () => true,
): Promise<Rest> {
  for (let from = options.from ?? 0; ; ) {
    try {
      return await scanLines(sequence, { ...options, from })
    } catch (error) {
      if (!(error instanceof ArchivedError && mayPass(error.segment))) throw error
      from = error.end
    }
  }
}
