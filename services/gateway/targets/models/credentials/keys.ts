import { readText } from '@plat/config'
import type { Log } from '@plat/process'
import { VARIABLE } from './source.ts'

/** What a header can carry: visible ASCII without spaces. */
const KEY = /^[\x21-\x7e]+$/
/** Largest file of a key, in bytes: no header is longer. */
const MAX_FILE_BYTES = 16 * 1024

/** API keys of routes, held in memory and read again with every reload, so that a rotated key counts without a restart. */
export class KeyFiles {
  readonly #log: Log
  readonly #env: NodeJS.ProcessEnv
  #paths: ReadonlySet<string> = new Set()
  #keys: ReadonlyMap<string, string> = new Map()
  /** Files that have been told about. */
  #unreadable: ReadonlySet<string> = new Set()

  constructor(log: Log, env: NodeJS.ProcessEnv) {
    this.#log = log
    this.#env = env
  }

  /** Null: there is no readable key in the file, or in the variable of `env:<name>`. */
  key(source: string): string | null {
    if (!source.startsWith(VARIABLE)) return this.#keys.get(source) ?? null
    const text = this.#env[source.slice(VARIABLE.length)] ?? ''
    return KEY.test(text) ? text : null
  }

  /** Reads these files and forgets all others. */
  async follow(paths: ReadonlySet<string>): Promise<void> {
    this.#paths = paths
    await this.refresh()
  }

  /** Reads the same files again. A file that cannot be read has no key; it is told once. */
  async refresh(): Promise<void> {
    const paths = this.#paths
    const keys = new Map<string, string>()
    for (const path of paths) {
      const text = (await readText(path, MAX_FILE_BYTES))?.trim()
      if (text !== undefined && KEY.test(text)) keys.set(path, text)
    }
    // Other routes were published meanwhile: what was read is not what is wanted.
    if (paths !== this.#paths) return
    for (const path of paths) if (!keys.has(path)) this.#tell(path)
    this.#unreadable = new Set([...paths].filter((path) => !keys.has(path)))
    this.#keys = keys
  }

  #tell(path: string): void {
    if (!this.#unreadable.has(path)) this.#log.error({ path }, 'no readable API key: calls of its routes are refused')
  }
}
