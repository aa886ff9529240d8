import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf, systemClock } from '@plat/core'
import type { ReadAt } from '../lines.ts'
import { blockingFiles } from './files.ts'
import { LedgerSequence } from './sequence.ts'
import { verifyBeginning, verifySegment } from './verify-segment.ts'

/** Thread of `verifySegments`: posts the result of each segment, then ends. */
const { path, bytesPerSecond, unread } = workerData
await using sequence = await LedgerSequence.open(String(path), blockingFiles)
const started = systemClock.monotonic()
const pause = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
let bytes = 0
const active = sequence.parts.at(-1)
if (unread !== null && active !== undefined) {
  const source = slowed(sequence.sourceOf(active))
  const problem = await verifyBeginning(source, unread, await sequence.lastSealed()).catch(reasonOf)
  parentPort?.postMessage({ path, first: active.first, last: unread.head.seq, problem })
}
for (const part of sequence.parts) {
  const { segment } = part
  if (segment === null) continue
  const before = await sequence.segmentOf(segment.first - 1)
  const problem = await verifySegment(slowed(sequence.sourceOf(part)), segment, before).catch(reasonOf)
  parentPort?.postMessage({ path: part.path, first: segment.first, last: segment.last, problem })
}

/** Limits the rate over all segments. */
function slowed(source: ReadAt): ReadAt {
  return {
    async read(target, position) {
      const count = await source.read(target, position)
      bytes += count
      const early = started + (bytes / Number(bytesPerSecond)) * 1000 - systemClock.monotonic()
      // The thread has nothing else to do.
      if (early > 0) Atomics.wait(pause, 0, 0, early)
      return count
    },
  }
}
