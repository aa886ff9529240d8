import { Worker } from 'node:worker_threads'
import type { HoldTarget } from './legal-holds.ts'

/** Result of reading a whole segment. */
export interface Inspection {
  /** Why it is not what was sealed, or cannot be read; null when it is valid. */
  readonly problem: string | null
  /** The sessions and agents, of those given, that have records in it. */
  readonly found: readonly string[]
}

/** Heap of the thread in MiB: it holds one chunk of the segment at a time. */
const THREAD_HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }

export interface InspectOptions {
  readonly ledgerPath: string
  /** First record of the segment. */
  readonly first: number
  /** Sessions and agents to search for. */
  readonly targets: readonly HoldTarget[]
  readonly signal: AbortSignal
}

/** Verifies a sealed segment and searches it, on a separate thread. */
export async function inspectSegment({ signal, ...workerData }: InspectOptions): Promise<Inspection> {
  const { promise, resolve } = Promise.withResolvers<Inspection>()
  const ended = (problem: string) => resolve({ problem, found: [] })
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), {
    ...{ workerData, resourceLimits: THREAD_HEAP, env: {}, execArgv: [] },
  })
  thread.once('message', resolve)
  thread.once('error', (error: Error) => ended(error.message))
  thread.once('exit', () => ended('the thread has ended'))
  thread.unref()
  const stop = () => {
    // A process with nothing else to do must stay alive until it has ended.
    thread.ref()
    void thread.terminate()
  }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
