import { Worker } from 'node:worker_threads'
import { systemClock } from '@plat/core'
import type { Kind, Manifest } from './kinds/kinds.ts'
import { MANIFEST_MAX_BYTES, readManifest, type TextProblem } from './manifest.ts'

/** Longest text that is read at once, in characters; each thousand may take a millisecond. */
const AT_ONCE_MAX_CHARS = 8 * 1024
/** How long the thread may read one text, and how long it waits for the next, in milliseconds. */
const READ_MS = 30_000
const IDLE_MS = 10_000
/** Heap of the thread in MiB: the nodes of a text of 1 MiB weigh a few hundred times as much. */
const THREAD_HEAP = { maxOldGenerationSizeMb: 1024 }

/** A parsed text, or why it is not an object. */
export interface ReadManifest {
  readonly object: Manifest | null
  readonly problems: readonly TextProblem[]
}

/** Request and response of the worker thread. */
export interface ManifestQuestion {
  readonly kind: Kind
  readonly text: string
}

/** As `readManifest`, but a long text is read on a thread, with a deadline: the parser of YAML cannot yield. */
export function readManifestAside(kind: Kind, text: string): Promise<ReadManifest> {
  if (text.length <= AT_ONCE_MAX_CHARS || text.length > MANIFEST_MAX_BYTES)
    return Promise.resolve(readManifest(kind, text))
  return thread.read({ kind, text })
}

/** The thread of the process, which reads one text after the other. Started when a text needs it. */
class ManifestThread {
  #worker: Worker | null = null
  #last: Promise<unknown> = Promise.resolve()
  #cancelIdle: () => void = () => {}

  read(question: ManifestQuestion): Promise<ReadManifest> {
    const reading = this.#last.then(() => this.#read(question))
    this.#last = reading
    return reading
  }

  async #read(question: ManifestQuestion): Promise<ReadManifest> {
    this.#cancelIdle()
    const worker = this.#worker ?? this.#start()
    // It keeps the process alive while it reads, and at no other time.
    worker.ref()
    const { promise, resolve } = Promise.withResolvers<ReadManifest | null>()
    const failed = () => resolve(null)
    const cancelDeadline = systemClock.after(READ_MS, failed)
    worker.once('message', resolve).once('error', failed).once('exit', failed)
    worker.postMessage(question)
    const read = await promise
    cancelDeadline()
    worker.off('message', resolve).off('error', failed).off('exit', failed)
    worker.unref()
    if (read === null) await this.#end()
    else this.#cancelIdle = systemClock.after(IDLE_MS, () => void this.#end())
    return read ?? UNREADABLE
  }

  #start(): Worker {
    const worker = new Worker(new URL('./manifest-worker.ts', import.meta.url), {
      resourceLimits: THREAD_HEAP,
      // Nothing of the process's environment concerns it.
      env: {},
      execArgv: [],
    })
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

const UNREADABLE: ReadManifest = {
  object: null,
  problems: [{ line: 1, path: '', message: `cannot be read within ${READ_MS / 1000} s` }],
}

const thread = new ManifestThread()
