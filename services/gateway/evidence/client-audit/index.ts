import type { Clock } from '@plat/core'
import { readPublicJwk } from '@plat/keys'
import { AnchoredLedger, FollowedFile, type Ledgers, PositionFile } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { ClientAuditConfig } from './config.ts'

export interface ClientAuditOptions {
  readonly config: {
    readonly auditPath: string
    readonly clientAudit: ClientAuditConfig
  }
  readonly ledgers: Ledgers
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

type ClientAnchor = ClientAuditConfig['anchors'][number]

/**
 * Follows the ledgers of clients and anchors their heads (docs/spec/gateway.md, `clientAudit.anchors[]`). Rejects if the file of positions is
 * malformed, or if a key is no Ed25519 key.
 */
export async function createClientAudit(options: ClientAuditOptions): Promise<{ close(): Promise<void> }> {
  const { config } = options
  const { anchors } = config.clientAudit
  if (anchors.length === 0) return { async close() {} }
  const positions = await PositionFile.open(`${config.auditPath}.client-audit.json`)
  const followed = anchors.map((anchor, index) => follow(anchor, index, positions, options))
  for (const ledger of followed) void ledger.now()
  return { close: async () => void (await Promise.all(followed.map((ledger) => ledger.close()))) }
}

function follow(
  { name, file, pubkey, requireSigned, allowRestarts, intervalSeconds }: ClientAnchor,
  index: number,
  positions: PositionFile,
  { ledgers, clock, log, metrics }: ClientAuditOptions,
): AnchoredLedger {
  const saved = positions.of(name)
  const key = pubkey === '' ? null : readKey(pubkey, `clientAudit.anchors[${index}].pubkey`)
  const rules = { key, requireSigned, allowRestarts, continuation: false }
  const followed = new FollowedFile({ path: file, ...rules, position: saved })
  const labels = { anchor: name }
  const verified = metrics.gauge('plat_gateway_client_audit_verified').labels(labels)
  const headSeq = metrics.gauge('plat_gateway_client_audit_head_seq').labels(labels)
  const failures = metrics.counter('plat_gateway_client_audit_anchor_append_failures_total').labels(labels)
  return new AnchoredLedger({
    source: 'client',
    name,
    followed,
    last: saved?.anchored ?? null,
    everyMs: intervalSeconds * 1000,
    save: (anchored) => positions.save(name, followed.position, anchored),
    ledger: ledgers.of(''),
    meter: {
      verified: (isVerified) => verified.set(Number(isVerified)),
      headSeq: (seq) => headSeq.set(seq),
      appendFailed: () => failures.inc(),
    },
    clock,
    log,
  })
}

function readKey(hex: string, path: string) {
  const key = readPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(hex, 'hex').toString('base64url') })
  if (key === null) throw new Error(`${path}: is not an Ed25519 public key`)
  return key
}
