import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf, systemClock } from '@plat/core'
import { systemFiles } from '@plat/state'
import { LedgerSequence } from '../sequence/sequence.ts'
import { compressSegment, SegmentMismatchError } from './compress.ts'
import type { CompressResult } from './compress-in-thread.ts'

/** Thread of `compressInThread`: posts its result, then ends. */
const { ledgerPath, first } = workerData
parentPort?.postMessage(await run().catch(failed))

async function run(): Promise<CompressResult> {
  await using sequence = await LedgerSequence.open(String(ledgerPath))
  const segment = sequence.segments.find((one) => one.first === first)
  if (segment === undefined) throw new Error(`no sealed segment begins with record ${first}`)
  const before = await sequence.segmentOf(segment.first - 1)
  await compressSegment({ ledgerPath: String(ledgerPath), segment, before, files: systemFiles, onWritten: rester() })
  return { fault: null, isMismatch: false }
}

function failed(error: unknown): CompressResult {
  return { fault: reasonOf(error), isMismatch: error instanceof SegmentMismatchError }
}

/** Returns a function that waits as long as the work since the last wait: the thread uses half a core at most. */
function rester(): () => void {
  const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  let since = systemClock.monotonic()
  return () => {
    // The thread has nothing else to do.
    Atomics.wait(pause, 0, 0, systemClock.monotonic() - since)
    since = systemClock.monotonic()
  }
}
