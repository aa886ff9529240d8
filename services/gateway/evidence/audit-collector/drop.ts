import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readUpTo } from '@plat/config'
import { type Clock, PeriodicTask, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Collector } from './collector.ts'

export interface DropOptions {
  /** `auditCollector.dropDir` */
  readonly dir: string
  readonly everyMs: number
  readonly maxSegmentBytes: number
  readonly collector: Collector
  readonly clock: Clock
  readonly log: Log
}

const SEGMENT = /\.segment$/

/**
 * Takes segments that people carry: `<dir>/*.segment`. A segment that is taken goes away and its receipt is put under
 * `<dir>/receipts/`; one that is refused goes to `<dir>/refused/`. What is incomplete, or comes too early, stays for the next look.
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

  /** Takes what is there. Never rejects. */
  look(): Promise<void> {
    return this.#looks.now()
  }

  close(): Promise<void> {
    return this.#looks.close()
  }

  async #look(): Promise<void> {
    const { dir } = this.#options
    // The names that edges give are in the order of their records.
    const names = (await readdir(dir)).filter((name) => SEGMENT.test(name)).toSorted()
    for (const name of names) await this.#take(name)
  }

  async #take(name: string): Promise<void> {
    const { dir, collector, maxSegmentBytes } = this.#options
    const path = join(dir, name)
    // One byte more than a segment may have is enough to be refused.
    const taken = await collector.take(await readUpTo(path, maxSegmentBytes + 1))
    if (taken.kind === 'incomplete') return
    if (taken.kind === 'refused') {
      if (taken.reason !== 'gap') await moveTo(join(dir, 'refused'), path, name)
      return
    }
    const { edge, upTo } = taken.receipt
    await putWhole(join(dir, 'receipts'), `${edge}-${String(upTo).padStart(16, '0')}.receipt`, taken.text)
    await rm(path)
  }
}

async function moveTo(folder: string, path: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await rename(path, join(folder, name))
}

/** Whole or not at all, for whoever copies it meanwhile. */
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
