import { type Clock, PeriodicTask, type PoolObserver, reasonOf, rfc3339, SharedPool } from '@plat/core'
import { type KubernetesApi, KubernetesApiError } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Identity } from '../../call/index.ts'

/** Annotation of an AgentSession with the time of its last use (RFC 3339). */
const ANNOTATION = 'plat.dev/last-activity'
/** Annotation with the taint labels at that time, for forks of the session: JSON of `at` (RFC 3339), `agent` and `labels`. */
const TAINTS = 'plat.dev/taints'
/** Maximum number of remembered sessions without an AgentSession. */
const MAX_ABSENT = 20_000
/** Maximum number of concurrent requests. */
const MAX_REQUESTS = 8
/** Number of intervals until a session without an AgentSession is looked up again. */
const ABSENT_INTERVALS = 10

interface Use {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly agent: string
}

export interface ActivityParts {
  /** Returns the session's own labels. */
  readonly taints: (session: {
    readonly namespace: string
    readonly agent: string
    readonly session: string
  }) => readonly string[]
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly everyMs: number
  readonly live: { busy(visit: (who: Identity) => void): void }
  readonly clock: Clock
  readonly log: Log
  readonly observer?: PoolObserver | undefined
}

/** Collects the sessions that called and writes each once per interval: a call costs one map entry, however slow the API server is. */
export class Activity {
  readonly #parts: ActivityParts
  readonly #rounds: PeriodicTask
  readonly #stop = new AbortController()
  /** Last use since the last round, by the path of the AgentSession. */
  #seen = new Map<string, Use>()
  /** Shares of `#seen`; a session without one is written after a call in a later interval. */
  #pool = this.#emptyPool()
  /** Sessions without an AgentSession, with the time (epoch milliseconds) until which they are not looked up. */
  readonly #absent = new Map<string, number>()
  #fails = false

  constructor(parts: ActivityParts) {
    this.#parts = parts
    parts.observer?.watch(() => this.#pool.used)
    this.#rounds = new PeriodicTask({
      clock: parts.clock,
      everyMs: parts.everyMs,
      job: () => this.#round(),
      onFault: (error) => parts.log.error({ error: reasonOf(error) }, 'last activity could not be written'),
    })
  }

  /** Records the end of a call; `at` in milliseconds since the epoch. */
  see({ namespace, agent, session }: Readonly<Record<string, unknown>>, at: number): void {
    if (typeof namespace !== 'string' || typeof session !== 'string' || typeof agent !== 'string') return
    this.#used(namespace, session, { at, agent })
  }

  /** Writes the uses since the last round. Never rejects. */
  write(): Promise<void> {
    return this.#rounds.now()
  }

  /** Drops what is not written: the next call of the session records its use again. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#rounds.close()
  }

  #used(namespace: string, session: string, use: Use): void {
    const key = `${namespace}/${session}`
    if (this.#seen.has(key) || this.#pool.acquire(namespace) === null) this.#seen.set(key, use)
  }

  #emptyPool(): SharedPool {
    return new SharedPool({ name: 'session_activity', onRefused: (bound) => this.#parts.observer?.refused(bound) })
  }

  async #round(): Promise<void> {
    const { clock, live } = this.#parts
    const now = clock.now()
    live.busy(({ namespace, agent, session }) => this.#used(namespace, session, { at: now, agent }))
    for (const [key, until] of this.#absent) if (until <= now) this.#absent.delete(key)
    const batch = this.#seen
    this.#seen = new Map()
    this.#pool = this.#emptyPool()
    const failed: KubernetesApiError[] = []
    const waiting = [...batch].filter(([key]) => !this.#absent.has(key)).values()
    await Promise.all(Array.from({ length: MAX_REQUESTS }, () => this.#writeAll(waiting, failed)))
    this.#report(failed)
  }

  /** One of several workers that share the entries of `waiting`. */
  async #writeAll(waiting: Iterable<[key: string, use: Use]>, failed: KubernetesApiError[]): Promise<void> {
    const { clock, everyMs } = this.#parts
    for (const [key, use] of waiting) {
      const last = failed.at(-1)
      // Skips the remaining sessions while the API server does not answer.
      const fault = last !== undefined && isOfAll(last) ? last : await this.#write(key, use)
      if (fault === null) continue
      if (fault.status === 404) {
        if (this.#absent.size < MAX_ABSENT) this.#absent.set(key, clock.now() + ABSENT_INTERVALS * everyMs)
        continue
      }
      failed.push(fault)
      const [namespace = '', session = ''] = key.split('/')
      if (!this.#seen.has(key)) this.#used(namespace, session, use)
    }
  }

  /** Returns null when the annotation is written or the session has no AgentSession. */
  async #write(key: string, { at, agent }: Use): Promise<KubernetesApiError | null> {
    const { clock, taints } = this.#parts
    const [namespace = '', session = ''] = key.split('/')
    // Reads the time first: a label added after it is part of the next report.
    const report = { at: rfc3339(clock.now()), agent, labels: taints({ namespace, agent, session }) }
    try {
      await this.#parts.api.ask({
        method: 'PATCH',
        path: `/apis/plat.dev/v1alpha1/namespaces/${encodeURIComponent(namespace)}/agentsessions/${encodeURIComponent(session)}`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { [ANNOTATION]: rfc3339(at), [TAINTS]: JSON.stringify(report) } } },
        signal: this.#stop.signal,
      })
      return null
    } catch (error) {
      if (error instanceof KubernetesApiError) return error
      throw error
    }
  }

  /** Logs only the first of consecutive failures. */
  #report([first, ...more]: readonly KubernetesApiError[]): void {
    const { log } = this.#parts
    const fails = first !== undefined
    if (this.#stop.signal.aborted || fails === this.#fails) return
    this.#fails = fails
    if (fails) {
      const failure = { error: first.message, sessions: more.length + 1 }
      log.warn(failure, 'last activity of sessions cannot be written: they may be suspended')
    } else log.info({}, 'last activity of sessions is written again')
  }
}

/** Returns whether the failure applies to every session, not just to this one. */
function isOfAll({ status }: KubernetesApiError): boolean {
  return status === 0 || status === 401 || status === 429 || status >= 500
}
