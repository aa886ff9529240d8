import { hostname } from 'node:os'
import type { Clock, Ids } from '@plat/core'
import { type LedgerMeter, type Ledgers, openLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Files } from '@plat/state'
import type { GatewayMetrics } from '../../metrics.ts'

export { auditBlock, transparencyLogBlock } from './config.ts'

export interface AuditOptions {
  readonly config: { readonly auditPath: string }
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** The machine's file system when absent. */
  readonly files?: Files
  /** Sees the bytes of every record that the ledger holds already, in order, and its place; the bytes are only good until it returns. */
  readonly onRecord: (record: Buffer, place: { readonly seq: number; readonly hash: string }) => void
}

export interface Audit {
  readonly ledgers: Ledgers
  /** The last record that has its place in the chain, durable or not. */
  placed(): { readonly seq: number; readonly hash: string }
  /** Commits what waits and gives the lock back. */
  close(): Promise<void>
}

/**
 * Opens the ledger of `auditPath` (document 3, "Audit"): the gateway does not start without it, whatever `auditFailurePolicy` says.
 * Throws one line when another process writes it, when it is damaged, and when it cannot be written.
 */
export async function createAudit({ config, clock, ids, log, metrics, files, onRecord }: AuditOptions): Promise<Audit> {
  const path = config.auditPath
  const ledger = await openLedger({
    path,
    tenant: '',
    replica: hostname(),
    clock,
    ids,
    meter: meterOf(metrics, log),
    onRecord,
    ...(files !== undefined && { files }),
  })
  const head = ledger.head()
  metrics.gauge('plat_gateway_audit_head_seq').set({}, head.seq)
  log.info({ path, seq: head.seq, hash: head.hash }, 'the audit ledger is open')
  return {
    ledgers: {
      of(tenant) {
        if (tenant !== '') throw new Error(`ledger of tenant ${tenant}: not built yet in this version`)
        return ledger
      },
    },
    placed: () => ledger.placed,
    close: () => ledger.close(),
  }
}

/** The series `plat_gateway_audit_*`; a disk that fails and comes back is told in the log as well. */
function meterOf(metrics: GatewayMetrics, log: Log): LedgerMeter {
  const seconds = metrics.histogram('plat_gateway_audit_commit_seconds').labels({})
  const records = metrics.counter('plat_gateway_audit_committed_records_total').labels({})
  const errors = metrics.counter('plat_gateway_audit_errors_total').labels({})
  const headSeq = metrics.gauge('plat_gateway_audit_head_seq').labels({})
  return {
    committed(commit, seq) {
      seconds.observe(commit.seconds)
      records.inc(commit.records)
      headSeq.set(seq)
    },
    missed: () => errors.inc(),
    poisoned: (reason, retryMs) =>
      log.error({ reason, retryMs }, 'the audit ledger cannot be written; no record is acknowledged'),
    recovered: (gap) => log.warn({ unrecorded: gap }, 'the audit ledger is written again; the gap is recorded'),
  }
}
