import { open } from 'node:fs/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import { readerOf } from '../find.ts'
import { growTree, messageOf, stateOf } from './grow.ts'

/** Thread of `growInThread`. */
const { path, from, to } = workerData
try {
  await using file = await open(path, 'r')
  parentPort?.postMessage(messageOf(await growTree(readerOf(file), { path, from: stateOf(from), to })))
} catch (error) {
  parentPort?.postMessage(reasonOf(error))
}
