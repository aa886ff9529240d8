import type { Worker } from 'node:worker_threads'

/** Resolves with the message of a thread, or with what `failed` returns for the reason why there is none. The thread ends when the signal aborts. */
export async function threadResult<T>(thread: Worker, signal: AbortSignal, failed: (reason: string) => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  thread.once('message', resolve)
  thread.once('error', (error: Error) => resolve(failed(error.message)))
  thread.once('exit', () => resolve(failed('the thread has ended')))
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
