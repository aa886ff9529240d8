import { Worker } from 'node:worker_threads'
import { threadOptions } from '../thread-options.ts'
import type { HoldTarget } from './legal-holds.ts'
import { threadResult } from './thread-result.ts'

/** Result of reading a whole segment. */
export interface Inspection {
  /** Why it is not what was sealed, or cannot be read; null when it is valid. */
  readonly problem: string | null
  /** The sessions and agents, of those given, that have records in it. */
  readonly found: readonly string[]
}

export interface InspectOptions {
  readonly ledgerPath: string
  /** First record of the segment. */
  readonly first: number
  /** Sessions and agents to search for. */
  readonly targets: readonly HoldTarget[]
  readonly signal: AbortSignal
}

/** Verifies a sealed segment and searches it, on a separate thread. */
export function inspectSegment({ signal, ...workerData }: InspectOptions): Promise<Inspection> {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), threadOptions(workerData))
  return threadResult<Inspection>(thread, signal, (problem) => ({ problem, found: [] }))
}
