import { Worker } from 'node:worker_threads'
import type { Clock } from '@plat/core'
import type { Files } from '@plat/state'
import { ReplyThread } from '../../reply-thread.ts'
import { asyncFiles, sourceFilesOver } from '../../sequence/files.ts'
import {
  type GrownMessage,
  type GrownTree,
  type Growth,
  type GrowthMessage,
  grownMessage,
  grownOf,
  growTree,
} from '../../sequence/grow.ts'
import { threadOptions } from '../../thread-options.ts'

/** Up to this size, the hashes of a file cost less than starting the thread that would compute them. */
export const SMALL_FILE_BYTES = 4 * 1024 * 1024
/** Two growths within this time are worth a thread, in milliseconds. */
const BUSY_MS = 1000
/** The thread ends after this time without a growth, in milliseconds. */
const IDLE_MS = 10_000

/**
 * Adds records of the active file to a tree. Few records are hashed in slices on this thread. While many are written, a separate thread hashes them,
 * which stays until they become few.
 */
export class FileGrower {
  readonly #files: Files | null
  readonly #clock: Clock
  readonly #thread = new ReplyThread<GrowthMessage, GrownMessage>(
    () => new Worker(new URL('../../sequence/grow-thread.ts', import.meta.url), threadOptions(null)),
  )
  #lastAt = Number.NEGATIVE_INFINITY
  #cancelEnd: () => void = () => {}
  #running: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** `files`: null for the system's, which alone the thread can read. */
  constructor(files: Files | null, clock: Clock) {
    this.#files = files
    this.#clock = clock
  }

  /** Implements `GrowTree`. A call waits for the one before, of which the result may be void by now. */
  readonly grow = (growth: Growth): Promise<GrownTree> => {
    const grown = this.#running.then(() => this.#grow(growth))
    this.#running = grown.catch(() => {})
    return grown
  }

  close(): void {
    this.#isClosed = true
    this.#cancelEnd()
    void this.#thread.end()
  }

  async #grow(growth: Growth): Promise<GrownTree> {
    if (this.#isClosed) throw new Error('the ledger is closed')
    this.#cancelEnd()
    try {
      return (await this.#growHere(growth)) ?? grownOf(await this.#growThere(growth))
    } finally {
      this.#lastAt = this.#clock.monotonic()
      if (this.#thread.isRunning) this.#cancelEnd = this.#clock.after(IDLE_MS, () => void this.#thread.end())
    }
  }

  /** Returns null when the thread is to do it. */
  async #growHere(growth: Growth): Promise<GrownTree | null> {
    const isBusy = this.#thread.isRunning || this.#clock.monotonic() - this.#lastAt < BUSY_MS
    if (this.#files === null && isBusy) return null
    const files = this.#files === null ? asyncFiles : sourceFilesOver(this.#files)
    const file = await files.open(growth.path)
    if (file === null) throw new Error(`${growth.path} does not exist`)
    try {
      const rest = (await file.size()) - growth.from.offset
      return this.#files !== null || rest <= SMALL_FILE_BYTES ? await growTree(file, growth) : null
    } finally {
      await file.close()
    }
  }

  /** A process with nothing else to do need not wait for it: a segment can be sealed later. */
  #growThere({ path, from, to }: Growth): Promise<GrownMessage> {
    return this.#thread.send({ path, from: grownMessage(from), to }, false)
  }
}
