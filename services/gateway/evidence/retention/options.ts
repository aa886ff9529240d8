import type { Clock } from '@plat/core'
import type { LedgerSegment, ListKeeper } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'

export interface RetentionOptions {
  readonly config: {
    readonly auditPath: string
    readonly auditSegmentCompression: 'none' | 'zstd'
  }
  readonly list: ListKeeper
  readonly onListed: (notify: (segments: readonly LedgerSegment[]) => void) => void
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}
