import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import { blockingFiles } from '../sequence/files.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { verifySegment } from '../sequence/verify-segment.ts'
import type { Inspection } from './inspect.ts'
import { HoldSearch, type HoldTarget } from './legal-holds.ts'

/** Thread of `inspectSegment`: posts its result, then ends. */
const { ledgerPath, first, targets } = workerData
parentPort?.postMessage(await inspect(targets).catch((error) => ({ problem: reasonOf(error), found: [] })))

async function inspect(held: readonly HoldTarget[]): Promise<Inspection> {
  await using sequence = await LedgerSequence.open(String(ledgerPath), blockingFiles)
  const part = sequence.parts.find((one) => one.first === first)
  const segment = part?.segment ?? null
  if (segment === null || part === undefined) throw new Error(`no sealed segment begins with record ${first}`)
  const search = new HoldSearch(held)
  const before = await sequence.segmentOf(segment.first - 1)
  const problem = await verifySegment(sequence.sourceOf(part), segment, before, (line) => search.see(line))
  return { problem, found: search.found }
}
