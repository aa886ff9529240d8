import { type Clock, reasonOf, rfc3339Micros } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'

export interface ElectorOptions {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly namespace: string
  /** Name of the Lease. */
  readonly name: string
  /** Identifies this process, also against its predecessor. */
  readonly identity: string
  /** How long others wait after they last saw the holder renew, in milliseconds. */
  readonly leaseMs: number
  /** How long the holder works without having renewed, in milliseconds; less than `leaseMs`. */
  readonly renewMs: number
  /** Pause between two attempts, in milliseconds. */
  readonly retryMs: number
  readonly clock: Clock
  readonly log: Log
}

/** A Lease as it was seen, and when: clocks of other machines are not believed. */
interface ObservedLease {
  readonly holder: string
  /** Changes with every write. */
  readonly version: string
  readonly leaseMs: number
  readonly transitions: number
  readonly object: Members
  /** By the monotonic clock. */
  readonly at: number
}

/** One of several replicas leads: the holder of a Lease of coordination.k8s.io. */
export class Elector {
  readonly #options: ElectorOptions
  #seen: ObservedLease | null = null
  #leads = false

  constructor(options: ElectorOptions) {
    this.#options = options
  }

  get leads(): boolean {
    return this.#leads
  }

  /**
   * Does `work` whenever this process leads, until `stop` aborts. The signal of `work` aborts when the lead is lost, or could be lost by
   * now because it was not renewed. The Lease is given back at the end, so that another goes on at once. Never rejects.
   */
  async run(work: (signal: AbortSignal) => Promise<void>, stop: AbortSignal): Promise<void> {
    const { retryMs, log, identity, clock } = this.#options
    while (!stop.aborted) {
      const begun = clock.monotonic()
      if (await this.#attempt(stop)) {
        log.info({ identity }, 'leads')
        await this.#lead(work, begun, stop)
        log.info({ identity }, 'leads no more')
      }
      await pause(clock, retryMs, stop)
    }
    if (this.#seen?.holder === identity) await this.#release()
  }

  /** `held`: when the attempt began that took the Lease. Others count from the write, so this counts from before it. */
  async #lead(work: (signal: AbortSignal) => Promise<void>, held: number, stop: AbortSignal): Promise<void> {
    const { renewMs, retryMs, clock } = this.#options
    const term = new AbortController()
    const over = () => term.abort()
    const deadlineAfter = (begun: number) => clock.after(Math.max(0, begun + renewMs - clock.monotonic()), over)
    stop.addEventListener('abort', over)
    if (stop.aborted) over()
    this.#leads = true
    const working = work(term.signal)
    let cancel = deadlineAfter(held)
    while (!term.signal.aborted) {
      await pause(clock, retryMs, term.signal)
      if (term.signal.aborted) break
      const begun = clock.monotonic()
      if (await this.#attempt(term.signal)) {
        cancel()
        cancel = deadlineAfter(begun)
      } else if (this.#seen?.holder !== this.#options.identity) over()
    }
    cancel()
    stop.removeEventListener('abort', over)
    await working
    this.#leads = false
  }

  /** Acquires or renews the Lease. Returns false if another holds it, or the API server cannot be reached. */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    const { identity, clock, log } = this.#options
    try {
      const seen = await this.#look(signal)
      if (seen === null) return await this.#write('POST', null, signal)
      const free = seen.holder === '' || seen.holder === identity || clock.monotonic() - seen.at >= seen.leaseMs
      return free && (await this.#write('PUT', seen, signal))
    } catch (error) {
      if (!signal.aborted) log.warn({ error: reasonOf(error) }, 'the leader Lease cannot be acquired or renewed')
      return false
    }
  }

  async #look(signal: AbortSignal): Promise<ObservedLease | null> {
    const { api } = this.#options
    try {
      const { body } = await api.ask({ method: 'GET', path: this.#path(), signal })
      this.#seen = this.#saw(body)
    } catch (error) {
      if (!(error instanceof KubernetesApiError) || error.status !== NOT_FOUND) throw error
      this.#seen = null
    }
    return this.#seen
  }

  /** The previous observation, unless the Lease was written since. */
  #saw(object: Members): ObservedLease {
    const { leaseMs, clock } = this.#options
    const spec = member(object, 'spec')
    const version = textOf(member(object, 'metadata'), 'resourceVersion')
    if (this.#seen?.version === version) return this.#seen
    const { leaseDurationSeconds: seconds, leaseTransitions: transitions } = spec
    return {
      holder: textOf(spec, 'holderIdentity'),
      version,
      leaseMs: typeof seconds === 'number' ? seconds * 1000 : leaseMs,
      transitions: typeof transitions === 'number' ? transitions : 0,
      object,
      at: clock.monotonic(),
    }
  }

  /** Answers whether the Lease is ours; a conflict says that another was faster. */
  async #write(method: 'POST' | 'PUT', seen: ObservedLease | null, signal: AbortSignal): Promise<boolean> {
    const { api, namespace, name, identity, leaseMs, clock } = this.#options
    const now = rfc3339Micros(clock.now())
    const before = member(seen?.object ?? {}, 'spec')
    const renews = seen?.holder === identity
    const spec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      acquireTime: renews ? before.acquireTime : now,
      renewTime: now,
      leaseTransitions: (seen?.transitions ?? 0) + (seen === null || renews ? 0 : 1),
    }
    const metadata = seen === null ? { name, namespace } : member(seen.object, 'metadata')
    try {
      const { body } = await api.ask({
        method,
        path: method === 'POST' ? this.#collection() : this.#path(),
        body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec },
        signal,
      })
      this.#seen = this.#saw(body)
      return true
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === CONFLICT) return false
      throw error
    }
  }

  /** Releases the Lease, so that no replica has to wait for its expiry. */
  async #release(): Promise<void> {
    const { api, log } = this.#options
    const seen = this.#seen
    if (seen === null) return
    const spec = { ...member(seen.object, 'spec'), holderIdentity: '', leaseDurationSeconds: 1 }
    const body = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: member(seen.object, 'metadata'),
      spec,
    }
    try {
      await api.ask({ method: 'PUT', path: this.#path(), body })
    } catch (error) {
      log.warn({ error: reasonOf(error) }, 'the leader Lease was not released: it expires by itself')
    }
  }

  #collection(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(this.#options.namespace)}/leases`
  }

  #path(): string {
    return `${this.#collection()}/${encodeURIComponent(this.#options.name)}`
  }
}

const NOT_FOUND = 404
const CONFLICT = 409

/** Resolves after `ms`, or when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
