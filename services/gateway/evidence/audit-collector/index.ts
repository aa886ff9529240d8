import { hostname } from 'node:os'
import type { Clock } from '@plat/core'
import type { Signer } from '@plat/keys'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type KeySource, pemSource } from '@plat/tokens'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Collector, type KnownEdge } from './collector.ts'
import type { AuditCollectorConfig } from './config.ts'
import { DropFolder } from './drop.ts'
import { createCollectorMetrics } from './metrics.ts'
import { EdgePositions } from './positions.ts'
import { createCollectorRoutes } from './routes.ts'
import { EdgeStore } from './store.ts'

export interface AuditCollectorOptions {
  readonly config: {
    readonly auditPath: string
    readonly auditCollector: AuditCollectorConfig
  }
  readonly ledgers: Ledgers
  /** Returns the current key of `auditCheckpointKey`. */
  readonly signer: () => Promise<Signer>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** Accepts segments of edges. */
export interface AuditCollector {
  /** `POST /v1/audit/segments` of the admin API; empty while off. */
  readonly routes: AdminRoutes
  close(): Promise<void>
}

/**
 * Creates the collector (docs/spec/gateway.md, `auditCollector`), if it is enabled. Rejects if its journal, a key or a stored ledger cannot be
 * read, if a stored ledger lacks acknowledged records, or if another process collects into the same folder.
 */
export async function createAuditCollector(options: AuditCollectorOptions): Promise<AuditCollector> {
  const { config, ledgers, signer, clock, log, metrics } = options
  const { enabled, id, edges, dropDir, pollSeconds, maxSegmentBytes } = config.auditCollector
  if (!enabled) return { routes: { mount() {} }, async close() {} }
  await using started = new AsyncDisposableStack()
  const dir = config.auditCollector.dir || `${config.auditPath}.edges`
  const places = started.adopt(await EdgePositions.open({ path: `${dir}.jsonl`, clock, log }), (one) => one.close())
  const known = new Map<string, KnownEdge>()
  for (const edge of edges) {
    const keys = started.adopt(pemSource(edge.publicKeyFiles, { clock, log }), (source: KeySource) => source.close())
    await keys.start()
    known.set(edge.id, { keys, store: await EdgeStore.open({ edge: edge.id, dir, places }) })
  }
  const collector = new Collector({
    id: id || hostname(),
    edges: known,
    maxSegmentBytes,
    signer,
    ledger: ledgers.of(''),
    clock,
    log,
    metrics: createCollectorMetrics(metrics),
  })
  if (dropDir !== '') {
    const drop = new DropFolder({ dir: dropDir, everyMs: pollSeconds * 1000, maxSegmentBytes, collector, clock, log })
    started.adopt(drop, (one) => one.close())
    void drop.look()
  }
  const open = started.move()
  return { routes: createCollectorRoutes(collector, maxSegmentBytes), close: () => open.disposeAsync() }
}
