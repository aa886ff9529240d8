import { Worker } from 'node:worker_threads'

/** Result of one compression. */
export interface CompressResult {
  /** Null: the segment is compressed. */
  readonly fault: string | null
  /** Its lines are not what was sealed: another attempt would not help. */
  readonly isMismatch: boolean
}

/** Heap of the thread in MiB: it holds the frames of one write, and one chunk of the segment. */
const THREAD_HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 }

/** Compresses the sealed segment that begins with record `first` on a separate thread, which ends when the signal aborts. */
export async function compressInThread(
  ledgerPath: string,
  first: number,
  signal: AbortSignal,
): Promise<CompressResult> {
  const { promise, resolve } = Promise.withResolvers<CompressResult>()
  const ended = (fault: string) => resolve({ fault, isMismatch: false })
  const thread = new Worker(new URL('./compress-thread.ts', import.meta.url), {
    workerData: { ledgerPath, first },
    resourceLimits: THREAD_HEAP,
    env: {},
    execArgv: [],
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
