import { Worker } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import type { Head } from '../format.ts'
import { threadOptions } from '../thread-options.ts'

/** Reply of the worker: the root, or the reason for its failure. */
type TreeResult = { readonly root: string } | { readonly fault: string }

/** Maintains the tree of a ledger in use. Reading, hashing and writing nodes happen on a separate thread, at no cost to the writer of the ledger. */
export class TreeKeeper {
  readonly #ledgerPath: string
  #worker: Worker | null = null
  #answer: (answer: TreeResult) => void = () => {}
  #closed = false

  constructor(ledgerPath: string) {
    this.#ledgerPath = ledgerPath
  }

  /**
   * Resolves with the root over all records up to `to`, which must be durable; the files beside the ledger then cover them. One call at a time.
   * Rejects when the file cannot be read or was modified; the next call starts over from the last checkpoint.
   */
  async grow(to: Head): Promise<string> {
    if (this.#closed) throw new Error('the tree of the ledger is closed')
    const worker = this.#worker ?? this.#start()
    // Keeps the process alive only during a call.
    worker.ref()
    const answer = await new Promise<TreeResult>((resolve) => {
      this.#answer = resolve
      worker.postMessage(to)
    })
    worker.unref()
    if ('root' in answer) return answer.root
    await this.#end()
    throw new Error(answer.fault)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#end()
  }

  #start(): Worker {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), threadOptions(this.#ledgerPath))
    worker.on('message', (answer: TreeResult) => this.#answer(answer))
    worker.on('error', (error) => this.#answer({ fault: reasonOf(error) }))
    worker.on('exit', () => {
      // A worker that ends while idle must not serve a later call.
      if (this.#worker === worker) this.#worker = null
      this.#answer({ fault: 'the thread has ended' })
    })
    this.#worker = worker
    return worker
  }

  async #end(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    // A process with nothing else to do must stay alive until the worker has ended.
    worker?.ref()
    await worker?.terminate()
  }
}
