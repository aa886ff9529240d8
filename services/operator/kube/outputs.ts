import { createHash } from 'node:crypto'
import { MAX_WATCHED_BYTES } from '@plat/config'
import { reasonOf } from '@plat/core'
import type { KubernetesApi } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { type OperatorRegistry, ReconcileError } from '../controllers/controller.ts'
import { CONFIG_MAP_BYTES, type PackedFile } from '../render/size/packed.ts'

/** Field manager of the operator in `managedFields`. */
export const OWNER = 'plat-operator'

/** The ConfigMap of a rendered file: `policies.json` is the key of that name in `plat-policies`. */
export function configMapOf(file: string): string {
  return `plat-${file.replace(/\.json$/, '')}`
}

export interface OutputsOptions {
  readonly api: KubernetesApi
  /** Where everything is written. */
  readonly namespace: string
  readonly registry: OperatorRegistry
  readonly log: Log
}

/**
 * ConfigMaps and Secrets that the operator writes: whole, by server-side apply, and only when they differ from what was last written. One
 * that cannot be written stays as it was, and does not keep others from being written.
 */
export class Outputs {
  readonly #options: OutputsOptions
  /** By path: digest of what this process last wrote there. */
  readonly #written = new Map<string, string>()
  /** Names of outputs whose last write failed. */
  readonly #failing = new Set<string>()

  constructor(options: OutputsOptions) {
    this.#options = options
  }

  /** Names of the outputs whose last write failed: the gateway still has what they said before. */
  get failing(): readonly string[] {
    return [...this.#failing]
  }

  /** Runs the write of one output. Returns what it threw, or null; throws only once `signal` aborts. */
  async attempt(name: string, signal: AbortSignal, write: () => Promise<void>): Promise<{ error: unknown } | null> {
    try {
      await write()
      this.#mark(name, false)
      return null
    } catch (error) {
      if (signal.aborted) throw error
      this.#mark(name, true)
      this.#options.log.error(
        { output: name, error: reasonOf(error) },
        'an output cannot be written; its previous content stays',
      )
      return { error }
    }
  }

  /** Throws an `KubernetesApiError`, and a `ReconcileError` `TooLarge` for what no ConfigMap holds: then what was written before stays. */
  async configMap(name: string, packed: PackedFile, signal: AbortSignal): Promise<void> {
    const { member, bytes, plainBytes } = packed
    if (plainBytes > MAX_WATCHED_BYTES) {
      const why = `${name} would hold ${plainBytes} bytes before compression: a gateway reads ${MAX_WATCHED_BYTES}`
      throw new ReconcileError('TooLarge', why)
    }
    this.#options.registry.gauge('plat_rendered_configmap_bytes').set({ name }, bytes)
    const content = { [member]: { [packed.key]: packed.text } }
    await this.#apply({ kind: 'ConfigMap', plural: 'configmaps', name, content, bytes }, signal)
  }

  /** `texts`: by key. As `configMap`. */
  async secret(name: string, texts: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    const data: Record<string, string> = {}
    let bytes = 0
    for (const [key, text] of texts) {
      data[key] = Buffer.from(text).toString('base64')
      bytes += Buffer.byteLength(text)
    }
    await this.#apply({ kind: 'Secret', plural: 'secrets', name, content: { data }, bytes }, signal)
  }

  /** The next call overwrites changes by others. */
  forget(): void {
    this.#written.clear()
  }

  /** This replica writes no more: another one reports what cannot be written. */
  release(): void {
    for (const name of [...this.#failing]) this.#mark(name, false)
    this.forget()
  }

  #mark(name: string, failed: boolean): void {
    if (failed) this.#failing.add(name)
    else this.#failing.delete(name)
    this.#options.registry.gauge('plat_rendered_output_failed').set({ name }, failed ? 1 : 0)
  }

  async #apply({ kind, plural, name, content, bytes }: Output, signal: AbortSignal): Promise<void> {
    const { api, namespace, log } = this.#options
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${plural}/${name}`
    const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex')
    if (this.#written.get(path) === digest) return
    if (bytes > CONFIG_MAP_BYTES) {
      throw new ReconcileError('TooLarge', `${kind} ${name} would have ${bytes} bytes: it holds ${CONFIG_MAP_BYTES}`)
    }
    const labels = { 'app.kubernetes.io/managed-by': OWNER, 'app.kubernetes.io/part-of': 'plat' }
    await api.ask({
      method: 'PATCH',
      path,
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: 'v1', kind, metadata: { name, namespace, labels }, ...content },
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
  /** `data` or `binaryData`. */
  readonly content: object
  readonly bytes: number
}
