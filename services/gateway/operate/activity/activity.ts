import { type Clock, PeriodicTask, type PoolObserver, reasonOf, rfc3339, SharedPool } from '@plat/core'
import { type KubernetesApi, KubernetesApiError } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Identity } from '../../call/index.ts'

/** What says of an AgentSession when it was last used: RFC 3339. */
const ANNOTATION = 'plat.dev/last-activity'
/** Its taint labels when that was written, for its forks: JSON of `at` (RFC 3339), `agent` and `labels`. */
const TAINTS = 'plat.dev/taints'
/** Sessions that are known not to be AgentSessions, at most. */
const MAX_ABSENT = 20_000
/** Requests under way at one time. */
const MAX_REQUESTS = 8
/** For how many intervals a session that is no AgentSession is not asked for again. */
const ABSENT_INTERVALS = 10

interface Use {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly agent: string
}

export interface ActivityParts {
  /** The labels that a session has of its own. */
  readonly taints: (session: {
    readonly namespace: string
    readonly agent: string
    readonly session: string
  }) => readonly string[]
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly everyMs: number
  readonly live: { busy(tell: (who: Identity) => void): void }
  readonly clock: Clock
  readonly log: Log
  readonly observer?: PoolObserver | undefined
}

/** Remembers who has called, and writes it once in each interval: a call costs one entry of a map, however slow the API server is. */
export class Activity {
  readonly #parts: ActivityParts
  readonly #rounds: PeriodicTask
  readonly #stop = new AbortController()
  /** Since the last round: last use, by the path of the AgentSession. */
  #seen = new Map<string, Use>()
  /** Their places; of others it is written once they call again in a later interval. */
  #pool = this.#emptyPool()
  /** Until when a session is not asked for, in milliseconds since the epoch: there is no such AgentSession. */
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

  /** Takes the last record of a call into account; `at` in milliseconds since the epoch. */
  see({ namespace, agent, session }: Readonly<Record<string, unknown>>, at: number): void {
    if (typeof namespace !== 'string' || typeof session !== 'string' || typeof agent !== 'string') return
    this.#used(namespace, session, { at, agent })
  }

  /** Writes what was seen since the last time. Never rejects. */
  write(): Promise<void> {
    return this.#rounds.now()
  }

  /** What was not written is written again by whoever calls next. */
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
    this.#tell(failed)
  }

  /** One of several that share what is waiting. */
  async #writeAll(waiting: Iterable<[key: string, use: Use]>, failed: KubernetesApiError[]): Promise<void> {
    const { clock, everyMs } = this.#parts
    for (const [key, use] of waiting) {
      const last = failed.at(-1)
      // Where the API server does not answer, those behind are not asked for.
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

  /** Null: it is written. */
  async #write(key: string, { at, agent }: Use): Promise<KubernetesApiError | null> {
    const { clock, taints } = this.#parts
    const [namespace = '', session = ''] = key.split('/')
    // The time first: a label that comes after it is in the next report.
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

  /** Faults are told once, until they are over. */
  #tell([first, ...more]: readonly KubernetesApiError[]): void {
    const { log } = this.#parts
    const fails = first !== undefined
    if (this.#stop.signal.aborted || fails === this.#fails) return
    this.#fails = fails
    if (fails) {
      const told = { error: first.message, sessions: more.length + 1 }
      log.warn(told, 'last activity of sessions cannot be written: they may be suspended')
    } else log.info({}, 'last activity of sessions is written again')
  }
}

/** Would the next session be refused as well? */
function isOfAll({ status }: KubernetesApiError): boolean {
  return status === 0 || status === 401 || status === 429 || status >= 500
}
