import { isObject } from '@plat/core'
import { LedgerSequence, scanPresent } from '@plat/ledger'
import type { SessionBook } from './book.ts'

/** Number of records at the end of the ledger that are read at start: older sessions are listed once they call again. */
export const RESTORED_RECORDS = 20_000
/** Occurs in every intent, of which the book needs nothing; cannot occur inside a string. */
const INTENT = Buffer.from('"kind":"intent"')

/** Fills the book from the end of the ledger up to record `last`, while calls are served. Rejects if the ledger cannot be read. */
export async function restore(
  book: SessionBook,
  { path, tenant, last }: { readonly path: string; readonly tenant: string; readonly last: number },
  signal: AbortSignal,
): Promise<void> {
  await using sequence = await LedgerSequence.open(path)
  // One record at a time: pages of them would grow the heap.
  await scanPresent(sequence, {
    from: await sequence.startOf(Math.max(0, last - RESTORED_RECORDS + 1)),
    onLine(buffer, start, end) {
      const line = buffer.subarray(start, end)
      if (line.includes(INTENT)) return !signal.aborted
      const value: unknown = JSON.parse(line.toString())
      if (!isObject(value) || !isObject(value.rec) || Number(value.seq) > last) return false
      if (typeof value.rec.at === 'string') book.see(value.rec, Date.parse(value.rec.at), tenant)
      return !signal.aborted
    },
  })
}
