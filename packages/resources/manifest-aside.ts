import { Worker } from 'node:worker_threads'
import { systemClock } from '@plat/core'
import type { Kind } from './kinds/kinds.ts'
import { linesOf, MANIFEST_MAX_BYTES, type ManifestResult, readAnyManifest, readManifest } from './manifest.ts'

/** Longest text parsed synchronously, in characters; each thousand may take several milliseconds. */
const AT_ONCE_MAX_CHARS = 4 * 1024
/** Deadline of the thread for one text, and its idle time, in milliseconds. */
const READ_MS = 30_000
const IDLE_MS = 10_000
/** Heap of the thread in MiB: the nodes of a text of 1 MiB weigh a few hundred times as much. */
const THREAD_HEAP = { maxOldGenerationSizeMb: 1024 }

/**
 * Requests of the worker thread: the object in a text (`ManifestResult`), of any kind if `kind` is null, or the lines of its fields
 * (`number[]`).
 */
export type ManifestQuestion =
  | { readonly kind: Kind | null; readonly text: string }
  | { readonly paths: readonly string[]; readonly text: string }

/** Like `readManifest`, but a long text is parsed on a thread, with a deadline: the YAML parser cannot yield. */
export async function readManifestAside(kind: Kind, text: string): Promise<ManifestResult> {
  if (text.length <= AT_ONCE_MAX_CHARS || text.length > MANIFEST_MAX_BYTES) return readManifest(kind, text)
  return (await thread.ask<ManifestResult>({ kind, text })) ?? UNREADABLE
}

/** Like `readAnyManifest`, likewise. */
export async function readAnyManifestAside(text: string): Promise<ManifestResult> {
  if (text.length <= AT_ONCE_MAX_CHARS || text.length > MANIFEST_MAX_BYTES) return readAnyManifest(text)
  return (await thread.ask<ManifestResult>({ kind: null, text })) ?? UNREADABLE
}

/** Like `linesOf`, likewise. */
export async function linesOfAside(text: string, paths: readonly string[]): Promise<readonly number[]> {
  if (text.length <= AT_ONCE_MAX_CHARS) return linesOf(text, paths)
  return (await thread.ask<readonly number[]>({ text, paths })) ?? paths.map(() => 1)
}

/** The parser thread of the process, which handles one text at a time. Started on demand. */
class ManifestThread {
  #worker: Worker | null = null
  #last: Promise<unknown> = Promise.resolve()
  #cancelIdle: () => void = () => {}

  /** Returns null if there is no response within the deadline. */
  ask<T>(question: ManifestQuestion): Promise<T | null> {
    const reading = this.#last.then(() => this.#ask<T>(question))
    this.#last = reading
    return reading
  }

  async #ask<T>(question: ManifestQuestion): Promise<T | null> {
    this.#cancelIdle()
    const worker = this.#worker ?? this.#start()
    // Keeps the process alive only while it parses.
    worker.ref()
    const { promise, resolve } = Promise.withResolvers<T | null>()
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
    return read
  }

  #start(): Worker {
    const worker = new Worker(new URL('./manifest-worker.ts', import.meta.url), {
      resourceLimits: THREAD_HEAP,
      // The thread needs no environment.
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

const UNREADABLE: ManifestResult = {
  object: null,
  problems: [{ line: 1, path: '', message: `cannot be read within ${READ_MS / 1000} s` }],
}

const thread = new ManifestThread()
