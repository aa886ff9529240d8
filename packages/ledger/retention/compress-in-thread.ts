import { Worker } from 'node:worker_threads'
import { threadOptions } from '../thread-options.ts'
import { threadResult } from './thread-result.ts'

/** Result of one compression. */
export interface CompressResult {
  /** Null: the segment is compressed. */
  readonly fault: string | null
  /** Its lines are not what was sealed: another attempt would not help. */
  readonly isMismatch: boolean
}

/** Compresses the sealed segment that begins with record `first` on a separate thread, which ends when the signal aborts. */
export function compressInThread(ledgerPath: string, first: number, signal: AbortSignal): Promise<CompressResult> {
  const workerData = { ledgerPath, first }
  const thread = new Worker(new URL('./compress-thread.ts', import.meta.url), threadOptions(workerData))
  return threadResult<CompressResult>(thread, signal, (fault) => ({ fault, isMismatch: false }))
}
