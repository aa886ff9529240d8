import { access } from 'node:fs/promises'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { ConfigSyncConfig, SyncedItem } from './config.ts'
import type { SyncedConfigMap } from './config-map.ts'

export interface ConfigSyncParts {
  readonly config: { readonly configSync: ConfigSyncConfig }
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Dialer
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/**
 * Writes ConfigMaps to files (docs/spec/gateway.md, `configSync`), about a minute sooner than the kubelet would. Resolves once each was read, before
 * any other feature reads the files; null while it is off. Rejects if a ConfigMap cannot be read and its files are not left from an earlier run.
 */
export async function openConfigSync(parts: ConfigSyncParts): Promise<ConfigSync | null> {
  const { config, env, dialer, clock } = parts
  const { enabled, items, apiServer, tokenFile, caFile, ...block } = config.configSync
  if (!enabled) return null
  const { clusterAccess, KubernetesApi } = await import('@plat/kubernetes')
  const { SyncedConfigMap } = await import('./config-map.ts')
  const cluster = await clusterAccess({ env, apiServer, tokenFile, caFile }).catch((error: unknown) => {
    throw new Error(`configSync: ${reasonOf(error)}`)
  })
  const namespace = block.namespace || env.POD_NAMESPACE || cluster.namespace || ''
  if (namespace === '') throw new Error('configSync.namespace: required where POD_NAMESPACE is not set')
  const api = new KubernetesApi({ access: cluster, dialer, clock })
  const byName = Map.groupBy(items, ({ configMap }) => configMap)
  const maps = [...byName].map(([name, own]) => new SyncedConfigMap({ api, namespace, name, items: own }))
  const sync = new ConfigSync(maps, parts)
  try {
    await sync.first(byName)
  } catch (error) {
    await sync.close()
    throw error
  }
  return sync
}

/** Polls every ConfigMap. */
class ConfigSync {
  readonly #maps: readonly SyncedConfigMap[]
  readonly #parts: ConfigSyncParts
  readonly #rounds: PeriodicTask
  /** Reason of the last failure, by ConfigMap. */
  readonly #faults = new Map<string, string>()

  constructor(maps: readonly SyncedConfigMap[], parts: ConfigSyncParts) {
    this.#maps = maps
    this.#parts = parts
    this.#rounds = new PeriodicTask({
      clock: parts.clock,
      everyMs: parts.config.configSync.pollMillis,
      job: () => this.#round(),
      onFault: (error) => parts.log.error({ error: reasonOf(error) }, 'reading the ConfigMaps failed'),
    })
  }

  async first(items: ReadonlyMap<string, readonly SyncedItem[]>): Promise<void> {
    await this.#rounds.now()
    for (const [name, reason] of this.#faults) {
      for (const { path, optional } of items.get(name) ?? []) {
        if (optional || (await isThere(path))) continue
        throw new Error(`configSync: ConfigMap ${name}: ${reason}; and there is no ${path} from an earlier run`)
      }
    }
  }

  close(): Promise<void> {
    return this.#rounds.close()
  }

  async #round(): Promise<void> {
    await Promise.all(this.#maps.map((map) => this.#look(map)))
  }

  /** Logs a failure only when it begins or changes, and when it ends. */
  async #look(map: SyncedConfigMap): Promise<void> {
    const { clock, log, metrics } = this.#parts
    const { name } = map
    const before = this.#faults.get(name)
    const began = clock.now()
    try {
      await map.look()
      metrics.gauge('plat_gateway_configsync_last_success_timestamp_seconds').set({ configmap: name }, began / 1000)
      this.#faults.delete(name)
      if (before !== undefined) log.info({ configMap: name }, 'the ConfigMap is read again')
    } catch (error) {
      const reason = reasonOf(error)
      metrics.counter('plat_gateway_configsync_errors_total').inc({ configmap: name })
      this.#faults.set(name, reason)
      if (reason !== before)
        log.warn({ configMap: name, error: reason }, 'a ConfigMap cannot be read: files stay as they are')
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
