import type { GatewayMetrics } from '../../metrics.ts'

/** Metrics of one ledger. */
export interface LedgerMetrics {
  /** A commit of this many records. */
  committed(seconds: number, records: number): void
  /** A record that could not be made durable. */
  missed(): void
  /** The last durable record. */
  head(seq: number): void
  /** The last record that a signed checkpoint covers. */
  signed(upTo: number): void
  /** Sealed segments. */
  segments(count: number): void
  /** Sealed segments that verified since the start. */
  verified(count: number): void
  /** Segments that did not. */
  damaged(count: number): void
  sealingFailed(): void
}

/** Counters count all ledgers together; gauges without a label are those of the fleet's ledger, and `plat_gateway_tenant_*` those of the others. */
export function ledgerMetrics(metrics: GatewayMetrics, tenant: string): LedgerMetrics {
  const seconds = metrics.histogram('plat_gateway_audit_commit_seconds').labels({})
  const records = metrics.counter('plat_gateway_audit_committed_records_total').labels({})
  const errors = metrics.counter('plat_gateway_audit_errors_total').labels({})
  const sealing = metrics.counter('plat_gateway_audit_sealing_failures_total').labels({})
  return {
    committed(spent, count) {
      seconds.observe(spent)
      records.inc(count)
    },
    missed: () => errors.inc(),
    sealingFailed: () => sealing.inc(),
    ...(tenant === '' ? fleetGauges(metrics) : tenantGauges(metrics, tenant)),
  }
}

type Gauges = Pick<LedgerMetrics, 'head' | 'signed' | 'segments' | 'verified' | 'damaged'>

function fleetGauges(metrics: GatewayMetrics): Gauges {
  const head = metrics.gauge('plat_gateway_audit_head_seq').labels({})
  const signed = metrics.gauge('plat_gateway_audit_signed_checkpoint_seq').labels({})
  const segments = metrics.gauge('plat_gateway_audit_segments').labels({})
  const verified = metrics.gauge('plat_gateway_audit_verified_segments').labels({})
  const damaged = metrics.gauge('plat_gateway_audit_damaged_segments').labels({})
  return {
    head: (seq) => head.set(seq),
    signed: (upTo) => signed.set(upTo),
    segments: (count) => segments.set(count),
    verified: (count) => verified.set(count),
    damaged: (count) => damaged.set(count),
  }
}

function tenantGauges(metrics: GatewayMetrics, tenant: string): Gauges {
  const head = metrics.gauge('plat_gateway_tenant_audit_head_seq').labels({ tenant })
  const signed = metrics.gauge('plat_gateway_tenant_audit_signed_checkpoint_seq').labels({ tenant })
  const damaged = metrics.gauge('plat_gateway_tenant_audit_damaged_segments').labels({ tenant })
  return {
    head: (seq) => head.set(seq),
    signed: (upTo) => signed.set(upTo),
    segments() {},
    verified() {},
    damaged: (count) => damaged.set(count),
  }
}
