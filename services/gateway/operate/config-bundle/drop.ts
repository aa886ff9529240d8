import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { readUpTo } from '@plat/config'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Bundles } from './bundles.ts'

const BUNDLE = /^[^.].*\.(?:tar\.gz|tgz)$/
/** Bundles of the folder that are looked at. */
const MAX_BUNDLES = 1000

export interface DropOptions {
  /** `configBundle.dropDir` */
  readonly dir: string
  readonly everyMs: number
  readonly maxBytes: number
  readonly bundles: Pick<Bundles, 'take'>
  readonly clock: Clock
  readonly log: Log
}

/** A file as it was when it was looked at last. */
interface ObservedFile {
  /** What changes with its content. */
  readonly stamp: string
  /** Nothing more will become of it. */
  readonly isDone: boolean
}

/**
 * Takes bundles that people carry: `*.tar.gz` and `*.tgz` of a folder, in the order of their names. The folder is only read, since other
 * gateways may take the same bundles. What is still being copied is looked at again.
 */
export class DropFolder {
  readonly #options: DropOptions
  readonly #looks: PeriodicTask
  #seen: ReadonlyMap<string, ObservedFile> = new Map()
  #told = ''

  constructor(options: DropOptions) {
    this.#options = options
    this.#looks = new PeriodicTask({
      ...options,
      job: () => this.#look(),
      onFault: (error) => this.#tell(reasonOf(error)),
    })
  }

  /** Takes what is new. Never rejects. */
  look(): Promise<void> {
    return this.#looks.now()
  }

  close(): Promise<void> {
    return this.#looks.close()
  }

  #tell(problem: string): void {
    const { dir, log } = this.#options
    if (problem !== this.#told) log.error({ dir, problem }, 'configBundle.dropDir cannot be used')
    this.#told = problem
  }

  async #look(): Promise<void> {
    const names = (await readdir(this.#options.dir)).filter((name) => BUNDLE.test(name)).toSorted()
    if (names.length > MAX_BUNDLES) throw new Error(`it holds more than ${MAX_BUNDLES} bundles: take old ones away`)
    const before = this.#seen
    const seen = new Map<string, ObservedFile>()
    this.#seen = seen
    for (const name of names) seen.set(name, await this.#take(name, before.get(name) ?? null))
    this.#told = ''
  }

  async #take(name: string, before: ObservedFile | null): Promise<ObservedFile> {
    const { dir, maxBytes, bundles, log } = this.#options
    const file = path.join(dir, name)
    const { size, mtimeMs, ino } = await stat(file)
    const stamp = [size, mtimeMs, ino].join()
    const isWhole = before?.stamp === stamp
    if (isWhole && before.isDone) return before
    // One byte more than a bundle may have is enough to be refused.
    const taken = await bundles.take({ bytes: await readUpTo(file, maxBytes + 1), source: 'drop', isWhole })
    if (taken.kind === 'waits' && !isWhole) log.warn({ path: file, why: taken.message }, 'a configuration bundle waits')
    return { stamp, isDone: taken.kind !== 'waits' }
  }
}
