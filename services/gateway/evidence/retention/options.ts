import type { Clock, Ids } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import type { Ledger, LedgerSegment, ListKeeper, StoredCheckpoint } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { RetentionConfig } from './config.ts'
import type { EvidenceNeeds } from './held.ts'
import type { Consumer } from './waits.ts'

export interface RetentionOptions {
  readonly config: {
    readonly auditPath: string
    readonly auditSegmentCompression: 'none' | 'zstd'
    readonly auditRetention: Pick<RetentionConfig, 'archive' | 'days' | 'bytes'> & {
      readonly tenants?: Readonly<Record<string, { readonly days?: number; readonly bytes?: number }>>
    }
  }
  readonly list: ListKeeper
  readonly onListed: (notify: (segments: readonly LedgerSegment[]) => void) => void
  /** Stores a copy under a name, reads it back, and resolves with where it is; null: copies are not kept. */
  readonly archive: { put(path: string, name: string): Promise<string> } | null
  /** The last record that each of them has received. */
  readonly received: Readonly<Record<Consumer, () => number>>
  readonly checkpoints: {
    last(fresh: boolean): Promise<StoredCheckpoint | null>
    keys(): readonly PublicKey[]
  }
  /** Returns which segments evidence objects need, of those that are sealed. Rejects when an object cannot be read. */
  readonly evidence: EvidenceNeeds
  readonly ledger: Pick<Ledger, 'append'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** Empty or absent: the fleet's. */
  readonly tenant?: string
}
