import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import type { Head } from '../format.ts'
import type { ThreadReply } from '../reply-thread.ts'
import { TreeGrower } from './grower.ts'

/** Worker thread of `TreeKeeper`: grows the tree of one ledger. */
const growing = TreeGrower.open(String(workerData))
const post = (reply: ThreadReply<string>) => parentPort?.postMessage(reply)

parentPort?.on('message', async (to: Head) => {
  try {
    const grower = await growing
    post({ reply: await grower.grow(to) })
  } catch (error) {
    post({ fault: reasonOf(error) })
  }
})
