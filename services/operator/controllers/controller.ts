import { type Clock, type Ids, reasonOf } from '@plat/core'
import { KubernetesApiError, retryAfterOf } from '@plat/kubernetes'
import type { Registry } from '@plat/metrics'
import type { Log } from '@plat/process'
import type { ControllerName, operatorMetrics } from '../metrics.ts'
import { type QueueObserver, WorkQueue } from './queue.ts'

export type OperatorRegistry = Registry<typeof operatorMetrics>

/** Reconciles the objects of one key. Throws to be called again later. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<{ readonly requeueAfterMs?: number }>

export interface ControllerParts {
  readonly name: ControllerName
  readonly reconcile: Reconcile
  readonly registry: OperatorRegistry
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  /** Keys that are worked on at the same time; one key never is. Default: 1. */
  readonly workers?: number
  /** Keys that come before all others, and have one more worker to themselves. Default: none. */
  readonly isUrgent?: (key: string) => boolean
}

/** An error that a retry alone does not fix; metrics count it by its reason. */
export class ReconcileError extends Error {
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

/** A queue, and the workers that empty it. */
export class Controller {
  readonly queue: WorkQueue
  readonly #parts: ControllerParts

  constructor(parts: ControllerParts) {
    this.#parts = parts
    this.queue = new WorkQueue({ ...parts, observer: observerOf(parts) })
  }

  /** Works until `signal` aborts; resolves when the last reconciliation is over. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { name, registry, workers = 1, isUrgent } = this.#parts
    const active = registry.gauge('controller_runtime_active_workers').labels({ controller: name })
    let busy = 0
    const empty = async (lane: 'all' | 'urgent') => {
      for (let key = await this.queue.next(signal, lane); key !== null; key = await this.queue.next(signal, lane)) {
        active.set(++busy)
        await this.#work(key, signal)
        this.queue.done(key)
        active.set(--busy)
      }
    }
    const all = Array.from({ length: workers }, () => empty('all'))
    await Promise.all(isUrgent === undefined ? all : [...all, empty('urgent')])
    this.queue.close()
  }

  async #work(key: string, signal: AbortSignal): Promise<void> {
    const { name, reconcile, registry, clock, log } = this.#parts
    const begun = clock.monotonic()
    const count = (result: 'success' | 'error' | 'requeue_after') => {
      const seconds = (clock.monotonic() - begun) / 1000
      registry.histogram('plat_reconcile_duration_seconds').observe({ controller: name }, seconds)
      registry.histogram('controller_runtime_reconcile_time_seconds').observe({ controller: name }, seconds)
      registry.counter('controller_runtime_reconcile_total').inc({ controller: name, result })
    }
    try {
      const { requeueAfterMs } = await reconcile(key, signal)
      this.queue.forget(key)
      if (requeueAfterMs !== undefined) this.queue.addAfter(key, requeueAfterMs)
      count(requeueAfterMs === undefined ? 'success' : 'requeue_after')
    } catch (error) {
      // An abort after losing the leadership is not a failure.
      if (signal.aborted) return
      count('error')
      registry.counter('plat_reconcile_errors_total').inc({ controller: name, reason: wordOf(error) })
      registry.counter('controller_runtime_reconcile_errors_total').inc({ controller: name })
      log.error({ controller: name, key, error: reasonOf(error) }, 'reconciliation failed; it is retried')
      this.queue.retry(key, retryAfterOf(error))
    }
  }
}

function observerOf({ name, registry }: ControllerParts): QueueObserver {
  const depth = registry.gauge('workqueue_depth').labels({ name })
  return {
    added: () => registry.counter('workqueue_adds_total').inc({ name }),
    retried: () => registry.counter('workqueue_retries_total').inc({ name }),
    depth: (keys) => depth.set(keys),
    waited: (ms) => registry.histogram('workqueue_queue_duration_seconds').observe({ name }, ms / 1000),
  }
}

/** `Conflict`, `Forbidden`, … of the API server; `Unreachable`; or a word of our own. */
function wordOf(error: unknown): string {
  if (error instanceof ReconcileError) return error.reason
  if (!(error instanceof KubernetesApiError)) return 'Error'
  if (error.status === 0) return 'Unreachable'
  return error.reason === '' ? `Status${error.status}` : error.reason
}
