import type { Clock, Ids } from '@plat/core'
import type { Dialer } from '@plat/http'
import { AnchoredLedger, type Ledgers, PositionFile, type Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import { DaemonClient } from './client.ts'
import type { SbxdConfig } from './config.ts'
import { FollowedDaemon } from './followed-daemon.ts'
import { Mirror } from './mirror.ts'

/** Name of the daemon's ledger in records and in the file of positions. */
const NAME = 'sbxd'

export interface SbxdOptions {
  readonly config: {
    readonly auditPath: string
    readonly sbxd: SbxdConfig
  }
  readonly ledgers: Ledgers
  readonly ledgerId: string
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface Sbxd {
  /** Called with the last record of each call; null while decisions are not mirrored. */
  readonly see: ((record: Rec, at: number) => void) | null
  close(): Promise<void>
}

/** Mirrors decisions to the sandbox daemon, and anchors both ledgers in each other (docs/spec/gateway.md, `sbxd`), as far as it is enabled. */
export async function createSbxd(options: SbxdOptions): Promise<Sbxd> {
  const { config, dialer } = options
  const { mirrorDecisions, anchorIntervalSeconds } = config.sbxd
  const client = new DaemonClient(config.sbxd, dialer)
  const mirror = mirrorDecisions ? createMirror(client, options) : null
  const anchored = anchorIntervalSeconds > 0 ? await follow(client, options) : null
  void anchored?.now()
  return {
    see: mirror?.see ?? null,
    async close() {
      await anchored?.close()
      await mirror?.close()
    },
  }
}

function createMirror(client: DaemonClient, { config, ledgerId, clock, ids, log, metrics }: SbxdOptions): Mirror {
  const outcomes = metrics.counter('plat_gateway_sbxd_mirror_total')
  return new Mirror({
    client,
    ledgerId,
    queueSize: config.sbxd.queueSize,
    onOutcome: (outcome, count) => outcomes.inc({ outcome }, count),
    clock,
    ids,
    log,
  })
}

async function follow(
  client: DaemonClient,
  { config, ledgers, ledgerId, clock, log, metrics }: SbxdOptions,
): Promise<AnchoredLedger> {
  const positions = await PositionFile.open(`${config.auditPath}.sbxd.json`)
  const saved = positions.of(NAME)
  const ledger = ledgers.of('')
  const followed = new FollowedDaemon({ client, ledgerId, head: () => ledger.head(), position: saved })
  const verified = metrics.gauge('plat_gateway_sbxd_audit_verified')
  const headSeq = metrics.gauge('plat_gateway_sbxd_audit_head_seq')
  const failures = metrics.counter('plat_gateway_sbxd_anchor_append_failures_total')
  return new AnchoredLedger({
    source: NAME,
    name: NAME,
    followed,
    last: saved?.anchored ?? null,
    everyMs: config.sbxd.anchorIntervalSeconds * 1000,
    save: (anchored) => positions.save(NAME, followed.position, anchored),
    ledger,
    meter: {
      verified: (isVerified) => verified.set({}, Number(isVerified)),
      headSeq: (seq) => headSeq.set({}, seq),
      appendFailed: () => failures.inc({}),
    },
    clock,
    log,
  })
}
