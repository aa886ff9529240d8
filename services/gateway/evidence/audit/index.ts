import type { Clock, Ids } from '@plat/core'
import type { Signer } from '@plat/keys'
import type { HeadStore, Ledger, Ledgers, Rec, RecordPlace } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Files } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { type AuditLedger, type AuditLedgerOptions, type CheckpointsView, openAuditLedger } from './audit-ledger.ts'
import { Fleet } from './copy/fleet.ts'
import { CopyFollower, type FollowerOptions } from './copy/follower.ts'
import type { CopyStore } from './copy/owner.ts'
import { type KeyringOptions, openKeyring } from './keyring.ts'
import { ledgerMetrics } from './ledger-metrics.ts'
import { createAuditRoutes } from './routes.ts'
import type { Segments } from './segments.ts'

export type { AuditLedger } from './audit-ledger.ts'

export interface AuditOptions extends Pick<AuditLedgerOptions, 'since' | 'onRecord'> {
  readonly config: KeyringOptions['config'] & AuditLedgerOptions['config']
  /** Source of `PLAT_AUDIT_HMAC_KEY`. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly keys?: NonNullable<KeyringOptions['keys']>
  /** Default: the file system of the machine. */
  readonly files?: Files
  /** Second storage of heads beside `<auditPath>.head`, or null. */
  readonly headStore?: HeadStore | null
  /** Where copies of the ledgers are kept, or null. */
  readonly copyStore?: CopyStore | null
}

/** The ledger of a tenant. */
export interface TenantLedgerOptions extends Pick<AuditLedgerOptions, 'since' | 'onRecord'> {
  readonly tenant: string
  /** Its active file. */
  readonly path: string
}

/** The ledgers of a gateway. The members without a tenant are those of the fleet's ledger. */
export interface Audit {
  /** Ledgers by tenant. What is of a tenant without a ledger goes to the fleet's. */
  readonly ledgers: Ledgers
  /** Its active file. */
  readonly path: string
  readonly ledgerId: string
  /** The last record with a place in the chain, durable or not. */
  placed(): RecordPlace
  /** Resolves with the last durable record once waiting ones are committed. */
  flushed(): Promise<RecordPlace>
  /** Current key of `auditCheckpointKey`. Rejects without one. */
  signer(): Promise<Signer>
  /** Checkpoints and their anchors. */
  readonly checkpoints: CheckpointsView
  /** Recent records of all ledgers that features may have to finish after a crash, as of the start. */
  recent(): readonly Rec[]
  /** Registers a listener for each time that a ledger cannot be written. */
  onUnavailable(notify: (reason: string) => void): void
  /** The sealed segments of the ledger. */
  readonly segments: Segments
  /** `/v1/audit` of the admin API. */
  readonly routes: AdminRoutes
  /** Opens the ledger of a tenant; it stays open until `close`. Rejects as `createAudit` does. */
  open(options: TenantLedgerOptions): Promise<AuditLedger>
  /** Returns the ledger of a tenant, or null; empty: the fleet's. */
  of(tenant: string): AuditLedger | null
  /** All open ledgers, the fleet's first. */
  all(): readonly AuditLedger[]
  /** The ledgers of all replicas. */
  readonly fleet: Fleet
  /** Reads the ledgers of other replicas from near their ends on, until `close`. Called once. */
  follow(onRecord: FollowerOptions['onRecord']): void
  /** Signs and commits waiting records, and releases the locks. */
  close(): Promise<void>
}

/**
 * Opens the ledger of `auditPath` (docs/spec/gateway.md, "Audit"); the gateway does not start without it, whatever the `auditFailurePolicy`.
 * Throws one line if another process writes it, if it is damaged, rolled back or not writable, or if a key for its checkpoints
 * cannot be used.
 */
export async function createAudit(options: AuditOptions): Promise<Audit> {
  const { config, metrics } = options
  const keyring = await openKeyring(options)
  const followers: ((reason: string) => void)[] = []
  const onPoisoned = (reason: string) => {
    for (const notify of followers) notify(reason)
  }
  const shared = { ...options, keyring, onPoisoned }
  const fleet = await openAuditLedger({ ...shared, tenant: '', metrics: ledgerMetrics(metrics, '') })
  const byTenant = new Map([['', fleet]])
  if (options.copyStore) followLag(metrics, byTenant)
  const ledgerOf = (tenant: string): Ledger => (byTenant.get(tenant) ?? fleet).ledger
  const of = (tenant: string) => byTenant.get(tenant) ?? null
  const { log, clock, copyStore } = options
  const copies = copyStore?.copies ?? null
  const all = new Fleet({ copies, of, log })
  let follower: CopyFollower | null = null
  return {
    ...fleet,
    ledgers: { of: ledgerOf },
    signer: () => fleet.checkpoints.signer(),
    recent: () => [...byTenant.values()].flatMap((one) => one.recent()),
    onUnavailable: (notify) => void followers.push(notify),
    routes: createAuditRoutes({ of, keyring, fleet: all, problemOf: (id) => follower?.problemOf(id) ?? null, log }),
    fleet: all,
    follow(onRecord) {
      if (copies === null) return
      const isHere = (id: string) => [...byTenant.values()].some(({ ledgerId }) => ledgerId === id)
      const onDamaged = (count: number) => metrics.gauge('plat_gateway_audit_copies_damaged').set({}, count)
      onDamaged(0)
      follower = new CopyFollower({ copies, isHere, clock, log, onRecord, onDamaged })
    },
    async open({ tenant, path: auditPath, since, onRecord }) {
      const own = { tenant, since, onRecord, config: { ...config, auditPath } }
      const opened = await openAuditLedger({ ...shared, ...own, metrics: ledgerMetrics(metrics, tenant) })
      byTenant.set(tenant, opened)
      return opened
    },
    of,
    all: () => [...byTenant.values()],
    async close() {
      await follower?.close()
      for (const one of [...byTenant.values()].reverse()) await one.close()
    },
  }
}

/** How far the copies of all ledgers together are behind. */
function followLag(metrics: GatewayMetrics, ledgers: ReadonlyMap<string, AuditLedger>): void {
  const lags = () => [...ledgers.values()].flatMap(({ shipper }) => (shipper === null ? [] : [shipper.lag]))
  metrics.gauge('plat_gateway_audit_copy_lag').from(() => lags().reduce((sum, { records }) => sum + records, 0))
  metrics.gauge('plat_gateway_audit_copy_lag_seconds').from(() => Math.max(0, ...lags().map(({ seconds }) => seconds)))
  metrics.gauge('plat_gateway_audit_copies_stuck').from(() => lags().filter(({ isStuck }) => isStuck).length)
}
