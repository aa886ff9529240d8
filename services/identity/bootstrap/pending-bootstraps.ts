import type { Socket } from 'node:net'
import { type Clock, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { NotReadyError, unavailable, type Watched } from './refusals.ts'

/** docs/spec/broker-api.md, "Limits": the longest long-poll, in seconds. */
export const MAX_WAIT_SECONDS = 25
/** A watch can miss a change of a later object: the whole chain is checked again at this interval, in milliseconds. */
const LOOK_AGAIN_MS = 10_000
/** Pause before the next check, in milliseconds: an object that changes constantly must not load the API server. */
const PAUSE_MS = 100

export interface WaitsOptions {
  readonly api: ClusterApi
  readonly clock: Clock
  /** Maximum number of concurrent requests; one peer has a quarter of them. */
  readonly cap: number
  readonly observer?: PoolObserver | undefined
}

/** Of these one peer may have both: so that a request that repeats one that hangs is answered. */
const LEAST_SHARE = 2

export interface WaitRequest {
  /** The pod's UID: a pod waits once, and its newest request is the one that waits. */
  readonly pod: string
  readonly waitMs: number
  /** Connection of the pod: the wait ends with it. */
  readonly socket: Socket
}

/** The requests of pods: how many there are at once, and how long each waits for objects that do not exist yet. */
export class PendingBootstraps {
  readonly #options: WaitsOptions
  readonly #waiting = new Map<string, AbortController>()
  readonly #running: SharedPool
  #draining = false

  constructor(options: WaitsOptions) {
    this.#options = options
    const { cap, observer } = options
    const share = Math.max(LEAST_SHARE, Math.floor(cap / 4))
    this.#running = watchedPool({ name: 'bootstrap_requests', total: cap, shares: [share], observer })
  }

  /** Runs one request of a peer address, or refuses it with 503 when too many run, of all or of this peer: a pod is not known yet. */
  async admit<T>(peer: string, work: () => Promise<T>): Promise<T> {
    if (this.#running.acquire(peer) !== null) throw unavailable('too many concurrent bootstrap requests')
    try {
      return await work()
    } finally {
      this.#running.release(peer)
    }
  }

  /** Calls `look` until it resolves, fails with anything except NotReadyError, or time is up: then rejects with NotReadyError. */
  async poll<T>({ pod, waitMs, socket }: WaitRequest, look: () => Promise<T>): Promise<T> {
    const { clock } = this.#options
    const over = new AbortController()
    const abort = () => over.abort()
    const end = clock.monotonic() + waitMs
    if (waitMs === 0 || this.#draining) abort()
    else this.#supersede(pod, over)
    socket.once('close', abort)
    try {
      for (;;) {
        try {
          return await look()
        } catch (error) {
          const left = end - clock.monotonic()
          if (!(error instanceof NotReadyError) || over.signal.aborted || left <= 0) throw error
          await this.#change(error.watched, Math.min(left, LOOK_AGAIN_MS), over.signal)
        }
      }
    } finally {
      socket.off('close', abort)
      if (this.#waiting.get(pod) === over) this.#waiting.delete(pod)
    }
  }

  /** Ends every wait at once, and starts no new one. */
  drain(): void {
    this.#draining = true
    for (const over of this.#waiting.values()) over.abort()
  }

  /** A pod must not occupy the slots of others: its older long-poll ends. */
  #supersede(pod: string, over: AbortController): void {
    this.#waiting.get(pod)?.abort()
    this.#waiting.set(pod, over)
  }

  /** Resolves when the object may have changed, time is up, or the client has disconnected. */
  async #change({ path, name, resourceVersion }: Watched, ms: number, over: AbortSignal): Promise<void> {
    const { api, clock } = this.#options
    const query = {
      fieldSelector: `metadata.name=${name}`,
      resourceVersion,
      timeoutSeconds: String(Math.ceil(ms / 1000)),
    }
    const time = new AbortController()
    const cancel = clock.after(ms, () => time.abort())
    const signal = AbortSignal.any([time.signal, over])
    try {
      await api.changed(path, query, signal)
      if (!signal.aborted) await new Promise<void>((resolve) => clock.after(Math.min(ms, PAUSE_MS), resolve))
    } finally {
      cancel()
    }
  }
}
