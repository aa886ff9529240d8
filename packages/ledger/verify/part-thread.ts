import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import { blockingFiles } from '../sequence/files.ts'
import { SegmentDamagedError, SegmentListError } from '../sequence/segment-list-error.ts'
import { ArchivedError } from '../sequence/sequence.ts'
import { TooManyClaimsError } from './part.ts'
import { LocalRunner } from './runner.ts'
import { type FromThread, startMessage, startOfMessage, type ToThread } from './threads.ts'

/** Thread of `ThreadRunner`: replies to each message. */
const post = (message: FromThread) => parentPort?.postMessage(message)
const runner = new LocalRunner(workerData, (progress) => post({ progress }), blockingFiles)

async function replyTo(message: ToThread): Promise<FromThread> {
  if ('collect' in message) {
    const { first, start } = message.collect
    return { claims: await runner.collect(first, startOfMessage(start)) }
  }
  const result = await runner.verify(message.verify)
  return { result: result === null ? null : { ...result, end: startMessage(result.end) } }
}

parentPort?.on('message', async (message: ToThread) => {
  post(
    await replyTo(message).catch((error: unknown) => ({
      fault: reasonOf(error),
      damage: error instanceof SegmentDamagedError ? { path: error.path, what: error.what } : null,
      isUsage: USAGE.some((type) => error instanceof type),
    })),
  )
})

const USAGE = [SegmentListError, ArchivedError, TooManyClaimsError]
