import { readFile } from 'node:fs/promises'
import { algorithmsOf } from '@plat/bundle'
import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import { readPublicKeys } from '@plat/keys'
import type { Ledger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type KeySource, pemSource } from '@plat/tokens'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Bundles, type BundlesOptions } from './bundles.ts'
import type { ConfigBundleConfig } from './config.ts'
import { DropFolder } from './drop.ts'
import { createBundleMetrics } from './metrics.ts'
import { Puller } from './pull.ts'
import { createBundleRoutes } from './routes.ts'
import { BundleStore } from './store.ts'

interface Config {
  readonly configBundle: ConfigBundleConfig
  readonly auditPath: string
  readonly auditFailurePolicy: string
}

/**
 * Opens the folder that bundles are unpacked into, before any file in it is read. Returns null while `configBundle` is off. Rejects if its
 * state is damaged.
 */
export async function openBundleFolder(options: {
  readonly config: Config
  readonly log: Log
}): Promise<BundleStore | null> {
  const { configBundle, auditPath } = options.config
  if (!configBundle.enabled) return null
  const statePath = configBundle.statePath || `${auditPath}.config-bundle.json`
  return await BundleStore.open({ dir: configBundle.dir, statePath, log: options.log })
}

export interface ConfigBundleOptions {
  readonly config: Config
  /** Result of `openBundleFolder`. */
  readonly bundleFolder: BundleStore | null
  readonly problemsOf: BundlesOptions['problemsOf']
  readonly ledger: Pick<Ledger, 'append'>
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** Configuration from signed bundles (docs/spec/gateway.md, `configBundle`). */
export interface ConfigBundleFeature {
  /** `POST /v1/admin/config:bundle`; none unless `configBundle.push` is set. */
  readonly routes: AdminRoutes
  close(): Promise<void>
}

/** Starts to accept bundles. Rejects if a key file cannot be used, or no key in it can fulfil `signaturePolicy`. */
export async function createConfigBundle(options: ConfigBundleOptions): Promise<ConfigBundleFeature> {
  const { config, bundleFolder: store, clock, log } = options
  const { configBundle } = config
  const { push, pull, dropDir, pollSeconds, maxBytes } = configBundle
  if (store === null) return { routes: { mount() {} }, async close() {} }
  await using started = new AsyncDisposableStack()
  const keys = started.adopt(await openKeys(configBundle, options), (source) => source.close())
  const metrics = createBundleMetrics(options.metrics)
  const bundles = new Bundles({ ...options, config: configBundle, store, keys, record: recorder(options), metrics })
  started.defer(() => bundles.idle())
  if (dropDir !== '') {
    const drop = new DropFolder({ dir: dropDir, everyMs: pollSeconds * 1000, maxBytes, bundles, clock, log })
    started.adopt(drop, (one) => one.close())
    void drop.look()
  }
  if (pull.url !== '') {
    const puller = new Puller({ ...options, config: pull, pollSeconds, maxBytes, bundles })
    started.adopt(puller, (one) => one.close())
    puller.start()
  }
  const open = started.move()
  return {
    routes: push ? createBundleRoutes(bundles, maxBytes) : { mount() {} },
    close: () => open.disposeAsync(),
  }
}

/** Opens the keys that sign bundles; reloads them when their files change. */
async function openKeys(
  { trustedKeyFiles, signaturePolicy }: ConfigBundleConfig,
  { clock, log }: ConfigBundleOptions,
): Promise<KeySource> {
  const algorithms = new Set([...algorithmsOf('classical'), ...algorithmsOf('pq')].flat())
  const keys = pemSource(trustedKeyFiles, { clock, log, algorithms })
  try {
    await keys.start()
    const texts = await Promise.all(trustedKeyFiles.map((file) => readFile(file, 'utf8')))
    const found = texts.flatMap((text, index) => readPublicKeys(text, trustedKeyFiles[index] ?? ''))
    const lacking = algorithmsOf(signaturePolicy).find((kind) =>
      found.every((key) => !kind.includes(key.algorithm.name)),
    )
    if (lacking !== undefined) {
      throw new Error(`signaturePolicy ${signaturePolicy} needs a key of one of ${lacking.join(', ')}`)
    }
    return keys
  } catch (error) {
    keys.close()
    throw new Error(`configBundle.trustedKeyFiles: ${reasonOf(error)}`)
  }
}

/** Writes the ledger record before a bundle is applied; a failure is fatal only if the ledger is mandatory for calls too. */
function recorder({ config, ledger, log }: ConfigBundleOptions): BundlesOptions['record'] {
  return async (rec) => {
    try {
      await ledger.append(rec)
    } catch (error) {
      if (config.auditFailurePolicy === 'closed') throw error
      log.error({ error: reasonOf(error) }, 'a configuration bundle could not be recorded')
    }
  }
}
