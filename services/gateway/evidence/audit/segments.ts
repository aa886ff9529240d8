import type { Clock } from '@plat/core'
import { type LedgerSegment, ListKeeper } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Files } from '@plat/state'
import type { LedgerMetrics } from './ledger-metrics.ts'

export interface SegmentsOptions {
  readonly config: { readonly auditPath: string }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<LedgerMetrics, 'segments' | 'sealingFailed'>
  readonly files?: Files
}

/** The sealed segments of the ledger. */
export interface Segments {
  readonly list: ListKeeper
  /** Registers a listener for the segments each time that they were listed. */
  onListed(notify: (segments: readonly LedgerSegment[]) => void): void
}

/** Counts and logs sealed segments, and passes them on. */
export function createSegments({ config, clock, log, metrics, files }: SegmentsOptions): Segments {
  const path = config.auditPath
  const listeners: ((segments: readonly LedgerSegment[]) => void)[] = []
  let sealed = -1
  const list = new ListKeeper(path, files ?? null, {
    clock,
    onListed(segments, all) {
      const last = segments.at(-1)
      if (last !== undefined && last.last > sealed)
        log.info({ path, upTo: last.last }, 'a segment of the audit ledger is sealed')
      sealed = last?.last ?? sealed
      metrics.segments(all)
      for (const notify of listeners) notify(segments)
    },
    onFault(reason) {
      metrics.sealingFailed()
      log.error({ path, reason }, 'the sealed segments of the audit ledger could not be listed; it will be tried again')
    },
  })
  return { list, onListed: (notify) => void listeners.push(notify) }
}
