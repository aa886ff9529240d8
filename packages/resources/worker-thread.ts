import type { Worker } from 'node:worker_threads'
import { systemClock } from '@plat/core'

/** Deadline of the thread for one request, and its idle time, in milliseconds. */
export const THREAD_READ_MS = 30_000
const IDLE_MS = 10_000

/**
 * Options of a thread that parses. Its heap is in MiB: the nodes of a text of 1 MiB weigh a few hundred times as much. It needs no
 * environment.
 */
export const THREAD_OPTIONS = { resourceLimits: { maxOldGenerationSizeMb: 1024 }, env: {}, execArgv: [] }

/** A thread of the process for work that cannot yield, which handles one request at a time. Started on demand. */
export class WorkerThread {
  readonly #open: () => Worker
  #worker: Worker | null = null
  #last: Promise<unknown> = Promise.resolve()
  #cancelIdle: () => void = () => {}

  /** `open` starts the thread, which sends one message for each that it receives. */
  constructor(open: () => Worker) {
    this.#open = open
  }

  /** Returns null if there is no response within the deadline. */
  ask<T>(question: unknown): Promise<T | null> {
    const reading = this.#last.then(() => this.#ask<T>(question))
    this.#last = reading
    return reading
  }

  async #ask<T>(question: unknown): Promise<T | null> {
    this.#cancelIdle()
    const worker = this.#worker ?? this.#start()
    // Keeps the process alive only while it parses.
    worker.ref()
    const { promise, resolve } = Promise.withResolvers<T | null>()
    const failed = () => resolve(null)
    const cancelDeadline = systemClock.after(THREAD_READ_MS, failed)
    worker.once('message', resolve).once('error', failed).once('exit', failed)
    worker.postMessage(question)
    const read = await promise
    cancelDeadline()
    worker.off('message', resolve).off('error', failed).off('exit', failed)
    worker.unref()
    if (read === null) await this.#end()
    else this.#cancelIdle = systemClock.after(IDLE_MS, () => void this.#end())
    return read
  }

  #start(): Worker {
    const worker = this.#open()
    worker.on('error', () => {})
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = null
    })
    this.#worker = worker
    return worker
  }

  async #end(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    await worker?.terminate()
  }
}
