import { Worker } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import type { Head } from '../format.ts'

/** What the worker answers: the root, or why there is none. */
type TreeResult = { readonly root: string } | { readonly fault: string }

/** Heap of the worker in MiB: it holds a chunk of the ledger at a time, and makes short-lived hashes. */
const WORKER_HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }

/**
 * Keeps the tree of a ledger that is being written. All of it (reading the file, two hashes a record, the nodes) happens on a thread of
 * its own, so that the writer of the ledger pays nothing.
 */
export class TreeKeeper {
  readonly #ledgerPath: string
  #worker: Worker | null = null
  #answer: (answer: TreeResult) => void = () => {}
  #closed = false

  constructor(ledgerPath: string) {
    this.#ledgerPath = ledgerPath
  }

  /**
   * The root over all records up to `to`, which is durable; what lies beside the ledger then knows of them. One at a time.
   * Rejects when the file cannot be read or no longer holds what was written; the next call begins anew from the last checkpoint.
   */
  async grow(to: Head): Promise<string> {
    if (this.#closed) throw new Error('the tree of the ledger is closed')
    const worker = this.#worker ?? this.#start()
    // It keeps the process alive while it is asked, and at no other time.
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
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: this.#ledgerPath,
      resourceLimits: WORKER_HEAP,
      // Nothing of the process's environment concerns it.
      env: {},
      execArgv: [],
    })
    worker.on('message', (answer: TreeResult) => this.#answer(answer))
    worker.on('error', (error) => this.#answer({ fault: reasonOf(error) }))
    worker.on('exit', () => {
      // One that ends while nobody asks it answers nobody who asks later.
      if (this.#worker === worker) this.#worker = null
      this.#answer({ fault: 'the thread has ended' })
    })
    this.#worker = worker
    return worker
  }

  async #end(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    // Whoever waits for its end must not be left waiting by a process that has nothing else to do.
    worker?.ref()
    await worker?.terminate()
  }
}
