import { readText } from '@plat/config'
import type { Log } from '@plat/process'
import { VARIABLE } from './source.ts'

/** Characters allowed in a header: visible ASCII without spaces. */
const KEY = /^[\x21-\x7e]+$/
/** Maximum size of a key file, in bytes: no header is longer. */
const MAX_FILE_BYTES = 16 * 1024

/** API keys of routes, held in memory and reloaded periodically, so that a rotated key applies without a restart. */
export class KeyFiles {
  readonly #log: Log
  readonly #env: NodeJS.ProcessEnv
  #paths: ReadonlySet<string> = new Set()
  #keys: ReadonlyMap<string, string> = new Map()
  /** Files that were logged as unreadable. */
  #unreadable: ReadonlySet<string> = new Set()

  constructor(log: Log, env: NodeJS.ProcessEnv) {
    this.#log = log
    this.#env = env
  }

  /** Returns null if the file, or the variable of `env:<name>`, holds no key. */
  key(source: string): string | null {
    if (!source.startsWith(VARIABLE)) return this.#keys.get(source) ?? null
    const text = this.#env[source.slice(VARIABLE.length)] ?? ''
    return KEY.test(text) ? text : null
  }

  /** Reads these files and forgets others. */
  async follow(paths: ReadonlySet<string>): Promise<void> {
    this.#paths = paths
    await this.refresh()
  }

  /** Reads the files again. An unreadable file has no key and is logged once. */
  async refresh(): Promise<void> {
    const paths = this.#paths
    const keys = new Map<string, string>()
    for (const path of paths) {
      const text = (await readText(path, MAX_FILE_BYTES))?.trim()
      if (text !== undefined && KEY.test(text)) keys.set(path, text)
    }
    // Another set of files is current: discards the result.
    if (paths !== this.#paths) return
    for (const path of paths) if (!keys.has(path)) this.#reportUnreadable(path)
    this.#unreadable = new Set([...paths].filter((path) => !keys.has(path)))
    this.#keys = keys
  }

  #reportUnreadable(path: string): void {
    if (!this.#unreadable.has(path)) this.#log.error({ path }, 'no readable API key: calls of its routes are refused')
  }
}
