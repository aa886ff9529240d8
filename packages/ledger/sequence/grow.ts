import { Worker } from 'node:worker_threads'
import type { Head } from '../format.ts'
import { type ReadAt, scanLines } from '../lines.ts'
import { leafHash, MerkleTree, type TreeState } from '../proof/tree.ts'
import { threadOptions } from '../thread-options.ts'

/** Records to add to a tree: those of a file from its first line up to `to`. */
export interface Growth {
  readonly path: string
  /** State of the tree before the first line of the file. */
  readonly from: TreeState
  readonly to: Head
}

/** Returns the state of the tree over all records up to `to`. Rejects when the file does not hold that record. */
export type GrowTree = (growth: Growth) => Promise<TreeState>

/** State of a tree as a message between threads. */
export interface TreeMessage {
  readonly size: number
  readonly subtrees: readonly string[]
}

/** Reads and hashes the file on a separate thread. */
export const growInThread: GrowTree = ({ path, from, to }) => {
  const { promise, resolve, reject } = Promise.withResolvers<TreeState>()
  const thread = new Worker(
    new URL('./grow-thread.ts', import.meta.url),
    threadOptions({ path, from: messageOf(from), to }),
  )
  thread.once('message', (message: TreeMessage | string) => {
    if (typeof message === 'string') reject(new Error(message))
    else resolve(stateOf(message))
  })
  thread.once('error', reject)
  thread.once('exit', () => reject(new Error('the thread that hashes the segment has ended')))
  // A process with nothing else to do need not wait for it: a segment can be sealed later.
  thread.unref()
  return promise
}

/** Reads and hashes `source`, the file of the growth. */
export async function growTree(source: ReadAt, { path, from, to }: Growth): Promise<TreeState> {
  const tree = new MerkleTree(from)
  let last = ''
  await scanLines(source, {
    onLine(buffer, start, end) {
      if (tree.size > to.seq) return false
      const line = buffer.subarray(start, end)
      tree.add(leafHash(line))
      last = line.toString('latin1', HASH_START, HASH_END)
      return true
    },
  })
  if (tree.size !== to.seq + 1 || last !== to.hash) {
    throw new Error(`${path} no longer holds record ${to.seq} as it was written`)
  }
  return tree.state()
}

/** Offset of the hash in a line: after `{"hash":"`. */
const HASH_START = 9
const HASH_END = HASH_START + 64

export function messageOf({ size, subtrees }: TreeState): TreeMessage {
  return { size, subtrees: subtrees.map((hash) => hash.toString('hex')) }
}

export function stateOf({ size, subtrees }: TreeMessage): TreeState {
  return { size, subtrees: subtrees.map((hash) => Buffer.from(hash, 'hex')) }
}
