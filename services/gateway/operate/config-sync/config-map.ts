import { mkdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { MAX_WATCHED_BYTES, PACKED_SUFFIX, unpack } from '@plat/config'
import { isObject, reasonOf } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members } from '@plat/kubernetes'
import { systemFiles } from '@plat/state'
import type { SyncedItem } from './config.ts'

export interface ConfigMapParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly namespace: string
  readonly name: string
  readonly items: readonly SyncedItem[]
}

/** One ConfigMap, written to the files that its items name. */
export class SyncedConfigMap {
  readonly name: string
  readonly #parts: ConfigMapParts
  /** Last decompressed value of each item key, with its source. */
  readonly #unpacked = new Map<string, { readonly coded: string; readonly bytes: Uint8Array }>()

  constructor(parts: ConfigMapParts) {
    this.name = parts.name
    this.#parts = parts
  }

  /**
   * Reads the ConfigMap and writes changed files. Removes files of absent optional items; leaves files of absent required ones as they are.
   * Rejects with one line.
   */
  async look(): Promise<void> {
    const found = await this.#read()
    const missing: string[] = []
    for (const item of this.#parts.items) {
      const bytes = found === null ? null : await this.#bytesUnder(found, item.key)
      if (bytes !== null) await put(item.path, bytes)
      else if (item.optional) await rm(item.path, { force: true })
      else missing.push(item.key)
    }
    if (found === null && missing.length > 0) throw new Error('there is no such ConfigMap')
    if (missing.length > 0) throw new Error(`it has no key ${missing.join(', ')}`)
  }

  /** Returns the bytes under a key, or the decompressed ones under `<key>.gz`; null if neither exists. */
  async #bytesUnder({ data, binaryData }: Members, key: string): Promise<Uint8Array | null> {
    const text = isObject(data) ? data[key] : undefined
    if (typeof text === 'string') return Buffer.from(text)
    const binary = isObject(binaryData) ? binaryData : {}
    if (typeof binary[key] === 'string') return Buffer.from(binary[key], 'base64')
    const coded = binary[key + PACKED_SUFFIX]
    if (typeof coded !== 'string') return null
    const known = this.#unpacked.get(key)
    if (known?.coded === coded) return known.bytes
    const bytes = await unpack(Buffer.from(coded, 'base64'), MAX_WATCHED_BYTES).catch((error: unknown) => {
      throw new Error(`${key}${PACKED_SUFFIX}: ${reasonOf(error)}`)
    })
    this.#unpacked.set(key, { coded, bytes })
    return bytes
  }

  async #read(): Promise<Members | null> {
    const { api, namespace, name } = this.#parts
    const where = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${encodeURIComponent(name)}`
    try {
      const { body } = await api.ask({ method: 'GET', path: where })
      return body
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === 404) return null
      throw error
    }
  }
}

/** Replaces a file atomically; does nothing if the content is the same. */
async function put(file: string, bytes: Uint8Array): Promise<void> {
  const now = await readFile(file).catch(() => null)
  if (now?.equals(bytes) === true) return
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  systemFiles.replace(file, bytes)
}
