import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { readUpTo } from '@plat/config'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Bundles } from './bundles.ts'

const BUNDLE = /^[^.].*\.(?:tar\.gz|tgz)$/
/** Maximum number of bundles in the folder. */
const MAX_BUNDLES = 1000

export interface DropOptions {
  readonly dir: string
  readonly everyMs: number
  readonly maxBytes: number
  readonly bundles: Pick<Bundles, 'take'>
  readonly clock: Clock
  readonly log: Log
}

interface ObservedFile {
  /** Size and times; changes with the content. */
  readonly stamp: string
  /** The result for this content is final. */
  readonly isDone: boolean
}

/**
 * Applies bundles that people copy into a folder: `*.tar.gz` and `*.tgz`, in name order. The folder is only read, since other
 * gateways may use the same bundles. Files that are still being copied are checked again.
 */
export class DropFolder {
  readonly #options: DropOptions
  readonly #looks: PeriodicTask
  #seen: ReadonlyMap<string, ObservedFile> = new Map()
  #reported = ''

  constructor(options: DropOptions) {
    this.#options = options
    this.#looks = new PeriodicTask({
      ...options,
      job: () => this.#look(),
      onFault: (error) => this.#report(reasonOf(error)),
    })
  }

  /** Applies new bundles. Never rejects. */
  look(): Promise<void> {
    return this.#looks.now()
  }

  close(): Promise<void> {
    return this.#looks.close()
  }

  #report(problem: string): void {
    const { dir, log } = this.#options
    if (problem !== this.#reported) log.error({ dir, problem }, 'configBundle.dropDir cannot be used')
    this.#reported = problem
  }

  async #look(): Promise<void> {
    const names = (await readdir(this.#options.dir)).filter((name) => BUNDLE.test(name)).toSorted()
    if (names.length > MAX_BUNDLES) throw new Error(`it holds more than ${MAX_BUNDLES} bundles: remove old ones`)
    const before = this.#seen
    const seen = new Map<string, ObservedFile>()
    this.#seen = seen
    for (const name of names) seen.set(name, await this.#take(name, before.get(name) ?? null))
    this.#reported = ''
  }

  async #take(name: string, before: ObservedFile | null): Promise<ObservedFile> {
    const { dir, maxBytes, bundles, log } = this.#options
    const file = path.join(dir, name)
    const { size, mtimeMs, ino } = await stat(file)
    const stamp = [size, mtimeMs, ino].join()
    const isWhole = before?.stamp === stamp
    if (isWhole && before.isDone) return before
    // One byte more than the limit is enough to refuse the bundle.
    const result = await bundles.take({ bytes: await readUpTo(file, maxBytes + 1), source: 'drop', isWhole })
    if (result.kind === 'waits' && !isWhole)
      log.warn({ path: file, why: result.message }, 'a configuration bundle is not applied yet')
    return { stamp, isDone: result.kind !== 'waits' }
  }
}
