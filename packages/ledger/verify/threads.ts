import { Worker } from 'node:worker_threads'
import { reasonOf } from '@plat/core'
import { messageOf, stateOf, type TreeMessage } from '../sequence/grow.ts'
import { SegmentDamagedError, SegmentListError } from '../sequence/segment-list-error.ts'
import { threadOptions } from '../thread-options.ts'
import type { Claim } from './claim-table.ts'
import type { PartClaims, PartResult, PartStart } from './part.ts'
import type { PartRunner, VerifyJob } from './runner.ts'

/** `PartStart` as a message between threads. */
export interface StartMessage extends Omit<PartStart, 'tree'> {
  readonly tree: TreeMessage | null
}

export type ToThread =
  | { readonly collect: { readonly first: number; readonly start: StartMessage } }
  | { readonly verify: readonly Claim[] }

export type FromThread =
  | { readonly progress: number }
  | { readonly claims: PartClaims | null }
  | { readonly result: (Omit<PartResult, 'end'> & { readonly end: StartMessage }) | null }
  | { readonly fault: string; readonly isUsage: boolean; readonly damage: DamageMessage | null }

/** A `SegmentDamagedError` as a message between threads. */
type DamageMessage = Pick<SegmentDamagedError, 'path' | 'what'>

/** Runs on a separate thread. */
export class ThreadRunner implements PartRunner {
  readonly #worker: Worker
  #waiting: PromiseWithResolvers<FromThread> | null = null
  #fault: Error | null = null

  constructor(job: VerifyJob, onProgress: (bytes: number) => void) {
    this.#worker = new Worker(new URL('./part-thread.ts', import.meta.url), threadOptions(job))
    this.#worker.on('message', (message: FromThread) => {
      if ('progress' in message) onProgress(message.progress)
      else this.#waiting?.resolve(message)
    })
    this.#worker.on('error', (error) =>
      this.#fail(new Error(`a thread of the verification failed: ${reasonOf(error)}`)),
    )
    this.#worker.on('exit', () => this.#fail(new Error('a thread of the verification has ended')))
  }

  async collect(first: number, start: PartStart): Promise<PartClaims | null> {
    const reply = await this.#send({ collect: { first, start: startMessage(start) } })
    return 'claims' in reply ? reply.claims : null
  }

  async verify(claims: readonly Claim[]): Promise<PartResult | null> {
    const reply = await this.#send({ verify: claims })
    if (!('result' in reply) || reply.result === null) return null
    return { ...reply.result, end: startOfMessage(reply.result.end) }
  }

  close(): Promise<number> {
    return this.#worker.terminate()
  }

  async #send(message: ToThread): Promise<FromThread> {
    if (this.#fault !== null) throw this.#fault
    this.#waiting = Promise.withResolvers()
    this.#worker.postMessage(message)
    const reply = await this.#waiting.promise
    if (!('fault' in reply)) return reply
    if (reply.damage !== null) throw new SegmentDamagedError(reply.damage.path, reply.damage.what)
    throw reply.isUsage ? new SegmentListError(reply.fault) : new Error(reply.fault)
  }

  #fail(error: Error): void {
    this.#fault ??= error
    this.#waiting?.reject(this.#fault)
  }
}

export function startMessage({ tree, ...start }: PartStart): StartMessage {
  return { ...start, tree: tree === null ? null : messageOf(tree) }
}

export function startOfMessage({ tree, ...start }: StartMessage): PartStart {
  return { ...start, tree: tree === null ? null : stateOf(tree) }
}
