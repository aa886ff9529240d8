import { Worker } from 'node:worker_threads'
import type { Head } from '../format.ts'
import { threadOptions } from '../thread-options.ts'

/** Result of verifying one sealed segment, or the beginning of the active file. */
export interface SegmentResult {
  readonly path: string
  readonly first: number
  readonly last: number
  /** Problem and its place; null when the segment is valid. */
  readonly problem: string | null
}

export interface VerifySegmentsOptions {
  readonly bytesPerSecond: number
  /** Beginning of the active file to verify as well, or null. */
  readonly unread: { readonly bytes: number; readonly head: Head } | null
  readonly onSegment: (result: SegmentResult) => void
  /** Called when the verification could not go on. */
  readonly onFault: (error: Error) => void
}

/** Verifies what a start did not read, if it is here: the beginning of the active file and the sealed segments, one after the other, on a separate thread. Returns a function that stops it. */
export function verifySegments(path: string, options: VerifySegmentsOptions): () => Promise<void> {
  const thread = new Worker(
    new URL('./verify-thread.ts', import.meta.url),
    threadOptions({ path, bytesPerSecond: options.bytesPerSecond, unread: options.unread }),
  )
  thread.on('message', options.onSegment)
  thread.once('error', options.onFault)
  thread.unref()
  return async () => void (await thread.terminate())
}
