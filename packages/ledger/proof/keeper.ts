import { Worker } from 'node:worker_threads'
import type { Head } from '../format.ts'
import { ReplyThread } from '../reply-thread.ts'
import { threadOptions } from '../thread-options.ts'

/** Maintains the tree of a ledger in use. Reading, hashing and writing nodes happen on a separate thread, at no cost to the writer of the ledger. */
export class TreeKeeper {
  readonly #thread: ReplyThread<Head, string>
  #closed = false

  constructor(ledgerPath: string) {
    this.#thread = new ReplyThread(() => new Worker(new URL('./worker.ts', import.meta.url), threadOptions(ledgerPath)))
  }

  /**
   * Resolves with the root over all records up to `to`, which must be durable; the files beside the ledger then cover them. One call at a time.
   * Rejects when the file cannot be read or was modified; the next call starts over from the last checkpoint.
   */
  async grow(to: Head): Promise<string> {
    if (this.#closed) throw new Error('the tree of the ledger is closed')
    try {
      return await this.#thread.send(to, true)
    } catch (error) {
      await this.#thread.end()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread.end()
  }
}
