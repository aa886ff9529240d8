import { readFile } from 'node:fs/promises'
import { type Clock, glob, type Ids, type JsonObject, type PoolObservers, reasonOf } from '@plat/core'
import { fileKeys, KeyServiceError, type KeyStore } from '@plat/keys'
import { capturePath, openCapture } from '@plat/ledger'
import type { Log } from '@plat/process'
import { AdminError } from '../../admin/index.ts'
import type { Identity } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Captures, type CapturesOptions } from './captures.ts'
import type { CaptureArgsConfig } from './config.ts'

export { REDACT_ALL } from './config.ts'

export interface CapturesParts {
  readonly pools?: PoolObservers<'capture_bytes'>
  readonly config: {
    readonly captureArgs: CaptureArgsConfig
  }
  /** Redacts by `captureArgs.dlpProfile`. */
  readonly redact: CapturesOptions['redact']
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** Default: keys in files only. */
  readonly keys?: KeyStore
}

/** A call that has ended, with its arguments as received. */
interface CapturedCall {
  readonly identity: Pick<Identity, 'namespace'>
  readonly received: { readonly args: Uint8Array | null } | null
}

/** Encrypted copies of the arguments of calls. */
export interface CapturesFeature {
  /** Observers of the end of calls; none if nothing is captured. */
  readonly observers: readonly { ended(call: CapturedCall, outcome: unknown, record: JsonObject | null): void }[]
  /** Returns captured arguments, or null if there are none or they have another key. Rejects with `state_unavailable` if the key service fails. */
  read(namespace: string, argsSha256: string): Promise<Uint8Array | null>
  close(): Promise<void>
}

/** Argument captures (docs/spec/gateway.md, `captureArgs`). Rejects with one line if the key cannot be used. */
export async function createCaptures(parts: CapturesParts): Promise<CapturesFeature> {
  const { config, redact, clock, ids, log, metrics } = parts
  const { enabled, dir, key, namespaces, retentionDays } = config.captureArgs
  if (!enabled) return { observers: [], read: async () => null, close: async () => {} }
  const outcomes = metrics.counter('plat_gateway_arg_captures_total')
  const cipher = await openKey(key, parts.keys ?? fileKeys)
  const captures = new Captures({
    dir,
    cipher,
    retentionDays,
    redact,
    clock,
    ids,
    observer: parts.pools?.of('capture_bytes'),
    onOutcome: (outcome) => outcomes.inc({ outcome }),
    onWait: (error) => log.warn({ error: reasonOf(error) }, 'captures of arguments wait for the key service'),
    onFault: (error) => log.error({ error: reasonOf(error) }, 'arguments could not be captured'),
  })
  void captures.sweep()
  const wanted = namespaces.map(glob)
  const ended = ({ identity: { namespace }, received }: CapturedCall, _: unknown, record: JsonObject | null) => {
    const args = received?.args ?? null
    if (args === null || typeof record?.argsSha256 !== 'string') return
    if (wanted.length === 0 || wanted.some((fits) => fits(namespace)))
      captures.add({ namespace, argsSha256: record.argsSha256, args })
  }
  return {
    observers: [{ ended }],
    async read(namespace, argsSha256) {
      const path = capturePath(dir, { namespace, argsSha256 })
      const text = path === null ? null : await readFile(path, 'utf8').catch(() => null)
      if (text === null) return null
      try {
        return (await openCapture(text, cipher))?.args ?? null
      } catch (error) {
        if (!(error instanceof KeyServiceError)) throw error
        throw new AdminError('state_unavailable', 'the key service does not decrypt captured arguments now')
      }
    },
    close: () => captures.close(),
  }
}

async function openKey(uri: string, keys: KeyStore) {
  try {
    return await keys.openCipher(uri)
  } catch (error) {
    throw new Error(`captureArgs.key: ${reasonOf(error)}`)
  }
}
