import type { Clock, Ids } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Signer } from '@plat/keys'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type KeySource, pemSource } from '@plat/tokens'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { type ApproverCheck, createApproverCheck } from './approvers.ts'
import { CollectorContact } from './collector-contact.ts'
import type { OfflineConfig } from './config.ts'
import { Edge } from './edge.ts'
import { Forwarder } from './forwarder.ts'
import { createOfflineMetrics, type OfflineGauges, type OfflineMetrics } from './metrics.ts'
import { ReceiptFolder } from './receipts.ts'
import { Sealer } from './sealer.ts'
import { Spool } from './spool.ts'
import { AT_EASE, createOfflineStage, type OfflineRule } from './stage.ts'

export type { ApproverCheck } from './approvers.ts'

export interface OfflineOptions {
  readonly config: {
    readonly auditPath: string
    readonly revocationsFile: string
    readonly offline: OfflineConfig
  }
  readonly ledgers: Ledgers
  readonly ledgerId: string
  /** Returns the current key of `auditCheckpointKey`. */
  readonly signer: () => Promise<Signer>
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** An edge that also works while disconnected. */
export interface OfflineFeature {
  readonly stage: Stage<'offline', 'target' | 'pin' | 'decision', never>
  /** Called before an approval. */
  readonly mayApprove: ApproverCheck
  /** The last record that a collector has acknowledged; infinite while the edge is off. */
  acknowledged(): number
  close(): Promise<void>
}

/**
 * Creates the edge (docs/spec/gateway.md, `offline`), if it is enabled. Rejects if the spool belongs to another ledger or cannot be read, or
 * if a key of a collector cannot be read.
 */
export async function createOffline(options: OfflineOptions): Promise<OfflineFeature> {
  const { config, ledgers, ledgerId, signer, clock, log } = options
  const metrics = createOfflineMetrics(options.metrics)
  const { offline } = config
  const staged = { highRiskTools: offline.highRiskTools, onDenied: (rule: OfflineRule) => metrics.denied(rule) }
  if (!offline.enabled) {
    return {
      stage: createOfflineStage({ ...staged, standing: AT_EASE }),
      mayApprove: () => true,
      acknowledged: () => Number.POSITIVE_INFINITY,
      async close() {},
    }
  }
  await using started = new AsyncDisposableStack()
  const edge = offline.edgeId
  const dir = offline.spoolDir || `${config.auditPath}.spool`
  const spool = await Spool.open({ dir, edge, ledgerId, maxBytes: offline.spoolMaxBytes, log })
  const head = () => ledgers.of('').head()
  const sealer = new Sealer({
    spool,
    ledgerPath: config.auditPath,
    ledgerId,
    edge,
    head,
    signer,
    maxRecords: offline.segmentMaxRecords,
    intervalMs: offline.sealIntervalSeconds * 1000,
    dropsForwarded: offline.fullPolicy === 'dropOldestForwarded',
    clock,
  })
  const keys = started.adopt(pemSource(offline.collectorKeyFiles, { clock, log }), (source: KeySource) =>
    source.close(),
  )
  await keys.start()
  const contact = new CollectorContact({ edge, ledgerId, keys, spool, hashOf: (seq) => sealer.hashOf(seq), clock, log })
  const asksLocally = offline.approvals === 'localApprovers'
  const here = new Edge({
    sealer,
    spool,
    contact,
    disconnectedAfterMs: offline.disconnectedAfterSeconds * 1000,
    maxStalenessMs: offline.maxRevocationStalenessSeconds * 1000,
    revocationsFile: config.revocationsFile,
    asksLocally,
    clock,
    log,
  })
  started.adopt(here, (one) => one.close())
  metrics.gauges(gaugesOf(here, spool, offline.spoolMaxBytes, () => head().seq))
  await here.start()
  startExchange(options, { ledgerId, spool, contact, metrics }, started)
  const open = started.move()
  const connected = () => here.connected
  return {
    stage: createOfflineStage({ ...staged, standing: here.standing }),
    mayApprove: createApproverCheck({ connected, local: asksLocally ? offline.localApprovers : [] }),
    acknowledged: () => spool.progress.acked,
    close: () => open.disposeAsync(),
  }
}

/** Starts the configured ways to send segments and receive receipts. */
function startExchange(
  { config: { offline }, signer, dialer, clock, ids, log }: OfflineOptions,
  {
    ledgerId,
    spool,
    contact,
    metrics,
  }: { ledgerId: string; spool: Spool; contact: CollectorContact; metrics: OfflineMetrics },
  started: AsyncDisposableStack,
): void {
  const { edgeId: edge, forward, receiptDropDir } = offline
  const onError = () => metrics.forwardFailed()
  if (forward.url !== '') {
    const parts = { config: forward, edge, ledgerId, spool, contact, signer, dialer, clock, ids, log, onError }
    const forwarder = started.adopt(new Forwarder(parts), (one) => one.close())
    forwarder.start()
  }
  if (receiptDropDir !== '') {
    const everyMs = forward.intervalSeconds * 1000
    const folder = new ReceiptFolder({ dir: receiptDropDir, everyMs, edge, contact, clock, log, onError })
    started.adopt(folder, (one) => one.close())
    void folder.look()
  }
}

function gaugesOf(edge: Edge, spool: Spool, spoolMaxBytes: number, headSeq: () => number): OfflineGauges {
  return {
    unforwardedRecords: () => headSeq() - Math.max(spool.progress.forwarded, spool.progress.acked),
    oldestUnforwardedSeconds: () => edge.oldestUnforwardedMs / 1000,
    lastAck: () => spool.progress.ackedAt / 1000,
    ackedSeq: () => spool.progress.acked,
    spoolBytes: () => spool.bytes,
    spoolMaxBytes: () => spoolMaxBytes,
    spoolFull: () => edge.standing.full,
    connected: () => edge.connected,
  }
}
