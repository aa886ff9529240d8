import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readUpTo } from '@plat/config'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Collector } from './collector.ts'

export interface DropOptions {
  readonly dir: string
  readonly everyMs: number
  readonly maxSegmentBytes: number
  readonly collector: Collector
  readonly clock: Clock
  readonly log: Log
}

const SEGMENT = /\.segment$/

/**
 * Accepts segments that people copy: `<dir>/*.segment`. An accepted segment is removed and its receipt stored in
 * `<dir>/receipts/`; a refused one is moved to `<dir>/refused/`. Incomplete and early segments stay for the next scan.
 */
export class DropFolder {
  readonly #options: DropOptions
  readonly #looks: PeriodicTask

  constructor(options: DropOptions) {
    const { dir, log } = options
    this.#options = options
    this.#looks = new PeriodicTask({
      ...options,
      job: () => this.#look(),
      onFault: (error) => log.error({ dir, error: reasonOf(error) }, 'auditCollector.dropDir cannot be used'),
    })
  }

  /** Scans the folder. Never rejects. */
  look(): Promise<void> {
    return this.#looks.now()
  }

  close(): Promise<void> {
    return this.#looks.close()
  }

  async #look(): Promise<void> {
    const { dir } = this.#options
    // Names given by edges sort in the order of their records.
    const names = (await readdir(dir)).filter((name) => SEGMENT.test(name)).toSorted()
    for (const name of names) await this.#take(name)
  }

  async #take(name: string): Promise<void> {
    const { dir, collector, maxSegmentBytes } = this.#options
    const path = join(dir, name)
    // One byte more than the limit is enough to refuse the segment.
    const result = await collector.take(await readUpTo(path, maxSegmentBytes + 1))
    if (result.kind === 'incomplete') return
    if (result.kind === 'refused') {
      if (result.reason !== 'gap') await moveTo(join(dir, 'refused'), path, name)
      return
    }
    const { edge, upTo } = result.receipt
    await putWhole(join(dir, 'receipts'), `${edge}-${String(upTo).padStart(16, '0')}.receipt`, result.text)
    await rm(path)
  }
}

async function moveTo(folder: string, path: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await rename(path, join(folder, name))
}

/** Writes atomically: people may copy the folder meanwhile. */
async function putWhole(folder: string, name: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const temporary = join(folder, `.${name}`)
  {
    await using file = await open(temporary, 'w')
    await file.writeFile(`${text}\n`)
    await file.sync()
  }
  await rename(temporary, join(folder, name))
}
