import { mkdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { ApiFault, isMembers, type KubernetesApi, type Members } from '@plat/kubernetes'
import { systemFiles } from '@plat/state'
import type { SyncedItem } from './config.ts'

export interface ConfigMapParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly namespace: string
  readonly name: string
  readonly items: readonly SyncedItem[]
}

/** What one ConfigMap holds, written to the files that its items name. */
export class SyncedConfigMap {
  readonly name: string
  readonly #parts: ConfigMapParts

  constructor(parts: ConfigMapParts) {
    this.name = parts.name
    this.#parts = parts
  }

  /**
   * Reads it, and writes what has changed. What is optional and absent is removed; what must be there and is not leaves its file as it was.
   * Rejects with one line.
   */
  async look(): Promise<void> {
    const found = await this.#read()
    const missing: string[] = []
    for (const item of this.#parts.items) {
      const bytes = found === null ? null : bytesUnder(found, item.key)
      if (bytes !== null) await put(item.path, bytes)
      else if (item.optional) await rm(item.path, { force: true })
      else missing.push(item.key)
    }
    if (found === null && missing.length > 0) throw new Error('there is no such ConfigMap')
    if (missing.length > 0) throw new Error(`it has no key ${missing.join(', ')}`)
  }

  async #read(): Promise<Members | null> {
    const { api, namespace, name } = this.#parts
    const where = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${encodeURIComponent(name)}`
    try {
      const { body } = await api.ask({ method: 'GET', path: where })
      return body
    } catch (error) {
      if (error instanceof ApiFault && error.status === 404) return null
      throw error
    }
  }
}

/** The bytes under a key; null: it is not there. */
function bytesUnder({ data, binaryData }: Members, key: string): Uint8Array | null {
  const text = isMembers(data) ? data[key] : undefined
  if (typeof text === 'string') return Buffer.from(text)
  const coded = isMembers(binaryData) ? binaryData[key] : undefined
  return typeof coded === 'string' ? Buffer.from(coded, 'base64') : null
}

/** Whoever reads the file meanwhile sees the old or the new whole; one that says the same already is left alone. */
async function put(file: string, bytes: Uint8Array): Promise<void> {
  const now = await readFile(file).catch(() => null)
  if (now?.equals(bytes) === true) return
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  systemFiles.replace(file, bytes)
}
