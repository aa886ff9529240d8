import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import type { Head } from '../format.ts'
import { TreeGrower } from './grower.ts'

/** Worker thread of `TreeKeeper`: grows the tree of one ledger. */
const growing = TreeGrower.open(String(workerData))

parentPort?.on('message', async (to: Head) => {
  try {
    const grower = await growing
    parentPort?.postMessage({ root: await grower.grow(to) })
  } catch (error) {
    parentPort?.postMessage({ fault: reasonOf(error) })
  }
})
