import { parentPort } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import type { ThreadReply } from '../reply-thread.ts'
import { blockingFiles } from './files.ts'
import { type GrownMessage, type GrowthMessage, grownMessage, grownOf, growTree } from './grow.ts'

/** Thread of `FileGrower`: adds records of a file to a tree. */
const post = (reply: ThreadReply<GrownMessage>) => parentPort?.postMessage(reply)

parentPort?.on('message', async ({ path, from, to }: GrowthMessage) => {
  try {
    const file = await blockingFiles.open(path)
    if (file === null) throw new Error(`${path} does not exist`)
    try {
      post({ reply: grownMessage(await growTree(file, { path, from: grownOf(from), to })) })
    } finally {
      await file.close()
    }
  } catch (error) {
    post({ fault: reasonOf(error) })
  }
})
