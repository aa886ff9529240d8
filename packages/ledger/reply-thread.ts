import type { Worker } from 'node:worker_threads'
import { reasonOf } from '@plat/core'

/** Message of a thread: its reply, or the reason why it has none. */
export type ThreadReply<T> = { readonly reply: T } | { readonly fault: string }

/** A thread that replies to one message at a time. It starts with the first one, and again with the next one after it has ended. */
export class ReplyThread<Message, Reply> {
  readonly #start: () => Worker
  #worker: Worker | null = null
  #answer: (answer: ThreadReply<Reply>) => void = () => {}

  constructor(start: () => Worker) {
    this.#start = start
  }

  get isRunning(): boolean {
    return this.#worker !== null
  }

  /** Rejects with the fault of the thread, or when it ends. One call at a time. `keepsAlive`: the process lives until the reply. */
  async send(message: Message, keepsAlive: boolean): Promise<Reply> {
    const worker = this.#worker ?? this.#begin()
    if (keepsAlive) worker.ref()
    const answer = await new Promise<ThreadReply<Reply>>((resolve) => {
      this.#answer = resolve
      worker.postMessage(message)
    })
    worker.unref()
    if ('reply' in answer) return answer.reply
    throw new Error(answer.fault)
  }

  /** Ends the thread; a call that waits rejects. */
  async end(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    // A process with nothing else to do must stay alive until the worker has ended.
    worker?.ref()
    await worker?.terminate()
  }

  #begin(): Worker {
    const worker = this.#start()
    worker.unref()
    worker.on('message', (answer: ThreadReply<Reply>) => this.#answer(answer))
    worker.on('error', (error) => this.#answer({ fault: reasonOf(error) }))
    worker.on('exit', () => {
      // A worker that ends while idle must not serve a later call; the next one may serve a call already.
      if (this.#worker === worker) this.#worker = null
      else if (this.#worker !== null) return
      this.#answer({ fault: 'the thread has ended' })
    })
    this.#worker = worker
    return worker
  }
}
