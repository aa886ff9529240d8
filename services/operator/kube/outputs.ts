import { createHash } from 'node:crypto'
import type { KubernetesApi } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { type OperatorRegistry, ReconcileFault } from '../controllers/controller.ts'
import { CONFIG_MAP_BYTES } from '../render/everything.ts'

/** Who the operator is in `managedFields`. */
export const OWNER = 'plat-operator'

export interface OutputsOptions {
  readonly api: KubernetesApi
  /** Where everything is written. */
  readonly namespace: string
  readonly registry: OperatorRegistry
  readonly log: Log
}

/** ConfigMaps and Secrets that the operator writes: whole, by server-side apply, and only when they are not as they were written last. */
export class Outputs {
  readonly #options: OutputsOptions
  /** By path: what stands there as far as this process wrote it. */
  readonly #written = new Map<string, string>()

  constructor(options: OutputsOptions) {
    this.#options = options
  }

  /** Throws an `ApiFault`, and a `ReconcileFault` `TooLarge` for what no ConfigMap holds: then what was written before stays. */
  async configMap(name: string, key: string, text: string, signal: AbortSignal): Promise<void> {
    const bytes = Buffer.byteLength(text)
    this.#options.registry.gauge('plat_rendered_configmap_bytes').set({ name }, bytes)
    await this.#apply({ kind: 'ConfigMap', plural: 'configmaps', name, data: { [key]: text }, bytes }, signal)
  }

  /** `texts`: by key. As `configMap`. */
  async secret(name: string, texts: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    const data: Record<string, string> = {}
    let bytes = 0
    for (const [key, text] of texts) {
      data[key] = Buffer.from(text).toString('base64')
      bytes += Buffer.byteLength(text)
    }
    await this.#apply({ kind: 'Secret', plural: 'secrets', name, data, bytes }, signal)
  }

  /** What others have changed since is written again with the next call. */
  forget(): void {
    this.#written.clear()
  }

  async #apply({ kind, plural, name, data, bytes }: Output, signal: AbortSignal): Promise<void> {
    const { api, namespace, log } = this.#options
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${name}`
    const digest = createHash('sha256').update(JSON.stringify(data)).digest('hex')
    if (this.#written.get(path) === digest) return
    if (bytes > CONFIG_MAP_BYTES) {
      throw new ReconcileFault('TooLarge', `${kind} ${name} would have ${bytes} bytes: it holds ${CONFIG_MAP_BYTES}`)
    }
    const labels = { 'app.kubernetes.io/managed-by': OWNER, 'app.kubernetes.io/part-of': 'plat' }
    await api.ask({
      method: 'PATCH',
      path,
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: 'v1', kind, metadata: { name, namespace, labels }, data },
      signal,
    })
    this.#written.set(path, digest)
    log.info({ kind, name, bytes }, 'rendered')
  }
}

interface Output {
  readonly kind: 'ConfigMap' | 'Secret'
  readonly plural: string
  readonly name: string
  readonly data: Readonly<Record<string, string>>
  readonly bytes: number
}
