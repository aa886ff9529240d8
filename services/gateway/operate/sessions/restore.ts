import { ledgerPage } from '@plat/ledger'
import type { SessionBook } from './book.ts'

/** Number of records at the end of the ledger that are read at start: older sessions are listed once they call again. */
export const RESTORED_RECORDS = 20_000
/** Records per turn of the event loop. */
const PAGE_RECORDS = 500

/** Fills the book from the end of the ledger up to record `last`, while calls are served. Rejects if the ledger cannot be read. */
export async function restore(book: SessionBook, path: string, last: number, signal: AbortSignal): Promise<void> {
  let from: number | null = Math.max(0, last - RESTORED_RECORDS + 1)
  while (from !== null && !signal.aborted) {
    const { items, next }: Awaited<ReturnType<typeof ledgerPage>> = await ledgerPage(path, {
      from,
      to: last,
      limit: PAGE_RECORDS,
      wants: () => true,
    })
    for (const { rec } of items) if (typeof rec.at === 'string') book.see(rec, Date.parse(rec.at))
    from = next
  }
}
