import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals, Leases, OnceSets } from '@plat/state'
import type { TokenVaultConfig } from './config.ts'
import type { FlowSealer } from './flow/flows.ts'
import type { RemovalMetrics, RevokedUsers } from './revoked-accounts.ts'
import type { EnvelopeKeys } from './store/envelope.ts'

export interface TokenVaultOptions {
  readonly pools?: PoolObservers<'connected_accounts' | 'connect_flows'>
  readonly config: {
    readonly auditPath: string
    readonly tokenVault: TokenVaultConfig
    readonly identity: {
      readonly resourceBaseURL: string
      readonly trustedIssuers: readonly { readonly issuer: string }[]
    }
  }
  readonly revokedUsers: RevokedUsers
  readonly sealer: FlowSealer
  readonly ledgers: Ledgers
  readonly metrics: RemovalMetrics
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly journals: Journals
  /** Used steps of flows. */
  readonly once: OnceSets
  /** Renewals in progress. */
  readonly leases: Leases
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Default: keys in files only. */
  readonly keys?: EnvelopeKeys
}
