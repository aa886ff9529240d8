import { readFile } from 'node:fs/promises'
import { type Clock, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import { type PublicKey, readPublicKeys, type Signer } from '@plat/keys'
import type { Ledger, Rec, StoredCheckpoint } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import { Anchorer } from './anchorer.ts'
import type { TransparencyLogConfig } from './config.ts'
import { createAnchorMetrics } from './metrics.ts'
import { detailsOf, Rekor } from './rekor.ts'

export { createAnchorRoutes } from './routes.ts'

export interface TransparencyOptions {
  readonly config: {
    readonly transparencyLog: TransparencyLogConfig
  }
  /** Checkpoints and their keys. */
  readonly checkpoints: {
    signer(): Promise<Signer>
    keys(): readonly PublicKey[]
    last(fresh: boolean): Promise<StoredCheckpoint | null>
    lastAnchor(): Rec | null
  }
  readonly ledger: Pick<Ledger, 'append'>
  /** Empty or absent: the fleet's. */
  readonly tenant?: string
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface Transparency {
  /** Anchors the whole ledger; null while off. */
  readonly anchorer: Pick<Anchorer, 'now'> | null
  /** The last record that an anchored checkpoint covers; infinite while off. */
  anchored(): number
  close(): Promise<void>
}

/**
 * Anchors checkpoints in a transparency log (docs/spec/gateway.md, `transparencyLog`), if it is enabled. Rejects if a key of the log cannot
 * be read, or if the log accepts no key of the type of `auditCheckpointKey`.
 */
export async function createTransparency(options: TransparencyOptions): Promise<Transparency> {
  const { config, checkpoints, ledger, dialer, clock, log, metrics } = options
  const { enabled, url, api, intervalSeconds, publicKeyFiles } = config.transparencyLog
  if (!enabled) return { anchorer: null, anchored: () => Number.POSITIVE_INFINITY, async close() {} }
  const { publicKey, alg } = await checkpoints.signer()
  if (api === 'v2' && detailsOf(publicKey) === null) {
    throw new Error(
      `transparencyLog.api: v2 does not accept the ${alg} key of auditCheckpointKey; use a P-256 key, or api v1 if the log supports it`,
    )
  }
  const anchorer = new Anchorer({
    url,
    intervalMs: intervalSeconds * 1000,
    rekor: new Rekor({ config: config.transparencyLog, dialer }),
    logKeys: await keysIn(publicKeyFiles),
    checkpoint: (fresh) => checkpoints.last(fresh),
    keys: () => checkpoints.keys(),
    ledger,
    last: checkpoints.lastAnchor(),
    clock,
    log,
    metrics: createAnchorMetrics(metrics, options.tenant),
  })
  anchorer.start()
  return { anchorer, anchored: () => anchorer.upTo, close: () => anchorer.close() }
}

async function keysIn(files: readonly string[]): Promise<readonly PublicKey[]> {
  const keys: PublicKey[] = []
  for (const [index, file] of files.entries()) {
    try {
      keys.push(...readPublicKeys(await readFile(file, 'utf8'), file))
    } catch (error) {
      throw new Error(`transparencyLog.publicKeyFiles[${index}]: ${reasonOf(error)}`)
    }
  }
  return keys
}
