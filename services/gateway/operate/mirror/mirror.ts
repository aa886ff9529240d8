import { type Clock, canonicalJson, isObject, PeriodicTask, reasonOf } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'

const API = '/apis/plat.dev/v1alpha1'
/** Field manager in `managedFields`. */
const OWNER = 'plat-gateway'
/** Label with the owner of a copy. */
const LABEL = 'plat.dev/mirrored-by'
/** Interval of retries after a failure, in milliseconds. */
const RETRY_MS = 5_000
/** Interval of full comparisons with the cluster, which repair changes by others, in milliseconds. */
const COMPARE_EVERY_MS = 60_000
/** Delay that groups changes into one round, in milliseconds. */
const GATHER_MS = 100
/** Page size of lists, in objects. */
const PAGE = 500

/** Desired state of one object. */
export interface Mirrored {
  readonly namespace: string
  readonly name: string
  readonly spec: Members
}

export interface MirrorParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly kind: string
  readonly plural: string
  /** Label value that separates our objects from those of other gateways. */
  readonly owner: string
  /** Returns all objects that should exist now. */
  readonly wanted: () => readonly Mirrored[]
  readonly clock: Clock
  readonly log: Log
}

/**
 * Keeps copies of other state in the cluster: applies every wanted object and deletes owned objects that are not wanted. It compares states
 * instead of forwarding changes, so that no change is lost while the API server or this process is away.
 */
export class Mirror {
  readonly #parts: MirrorParts
  /** Known copies in the cluster, by path; null if they must be listed first. */
  #there: Map<string, string> | null = null
  #listedAt = 0
  #due = true
  #fault: string | null = null
  #rounds: PeriodicTask | null = null
  #isGathering = false
  #signal: AbortSignal | undefined

  constructor(parts: MirrorParts) {
    this.#parts = parts
  }

  /** Called when the set of wanted objects changed. */
  changed(): void {
    this.#due = true
    if (this.#rounds === null || this.#isGathering) return
    this.#isGathering = true
    this.#parts.clock.after(GATHER_MS, () => {
      this.#isGathering = false
      void this.#rounds?.now()
    })
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#signal = signal
    // Another replica may have written since.
    this.#there = null
    const rounds = new PeriodicTask({
      clock: this.#parts.clock,
      everyMs: RETRY_MS,
      job: () => this.#round(),
      onFault: (error) => this.#report(reasonOf(error)),
    })
    this.#rounds = rounds
    void rounds.now()
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#rounds = null
    await rounds.close()
  }

  async #round(): Promise<void> {
    const { clock } = this.#parts
    const isOld = this.#there === null || clock.monotonic() - this.#listedAt >= COMPARE_EVERY_MS
    if (!isOld && !this.#due) return
    this.#due = true
    if (isOld) {
      this.#there = await this.#list()
      this.#listedAt = clock.monotonic()
    }
    while (this.#due && this.#signal?.aborted === false) {
      this.#due = false
      try {
        await this.#level(this.#there ?? new Map())
      } catch (error) {
        this.#due = true
        throw error
      }
    }
    this.#report(null)
  }

  /** Lists the objects with our label, by path. */
  async #list(): Promise<Map<string, string>> {
    const { api, plural, owner } = this.#parts
    const there = new Map<string, string>()
    let from = ''
    do {
      const query = { labelSelector: `${LABEL}=${owner}`, limit: String(PAGE), ...(from !== '' && { continue: from }) }
      const { body } = await api.ask({ method: 'GET', path: `${API}/${plural}`, query, ...this.#stop() })
      for (const object of Array.isArray(body.items) ? body.items.filter(isObject) : []) {
        const { namespace, name, labels } = member(object, 'metadata')
        // Guards against an API server that ignores selectors: everything would look like ours.
        if (typeof namespace !== 'string' || typeof name !== 'string') continue
        if (!isObject(labels) || labels[LABEL] !== owner) continue
        there.set(this.#pathOf({ namespace, name }), canonicalJson(member(object, 'spec')))
      }
      from = textOf(member(body, 'metadata'), 'continue')
    } while (from !== '')
    return there
  }

  /** Applies and deletes objects; a refused one does not block the others. */
  async #level(there: Map<string, string>): Promise<void> {
    const wanted = new Map(this.#parts.wanted().map((one) => [this.#pathOf(one), one]))
    const faults: string[] = []
    const each = async (path: string, work: () => Promise<void>) => {
      try {
        await work()
      } catch (error) {
        if (!isOfOne(error)) throw error
        faults.push(`${path}: ${reasonOf(error)}`)
      }
    }
    for (const path of there.keys()) if (!wanted.has(path)) await each(path, () => this.#remove(path, there))
    for (const [path, one] of wanted) {
      const text = canonicalJson(one.spec)
      if (there.get(path) === text) continue
      await each(path, async () => {
        await this.#apply(path, one)
        there.set(path, text)
      })
    }
    if (faults.length > 0) throw new Error(`${faults.length} not written: ${faults[0]}`)
  }

  async #apply(path: string, { namespace, name, spec }: Mirrored): Promise<void> {
    const { api, kind, owner } = this.#parts
    const labels = { 'app.kubernetes.io/managed-by': OWNER, [LABEL]: owner }
    await api.ask({
      method: 'PATCH',
      path,
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name, namespace, labels }, spec },
      ...this.#stop(),
    })
  }

  async #remove(path: string, there: Map<string, string>): Promise<void> {
    try {
      await this.#parts.api.ask({ method: 'DELETE', path, ...this.#stop() })
    } catch (error) {
      if (!(error instanceof KubernetesApiError && error.status === 404)) throw error
    }
    there.delete(path)
  }

  #stop(): { readonly signal?: AbortSignal } {
    return this.#signal === undefined ? {} : { signal: this.#signal }
  }

  #pathOf({ namespace, name }: Pick<Mirrored, 'namespace' | 'name'>): string {
    return `${API}/namespaces/${encodeURIComponent(namespace)}/${this.#parts.plural}/${encodeURIComponent(name)}`
  }

  /** Logs a failure only when it begins or changes, and when it ends. */
  #report(fault: string | null): void {
    const { kind, log } = this.#parts
    if (fault === this.#fault || this.#signal?.aborted === true) return
    this.#fault = fault
    if (fault === null) log.info({ kind }, 'copies in the cluster are written again')
    else log.warn({ kind, error: fault }, 'copies in the cluster cannot be written, will retry')
  }
}

/** Returns whether the error concerns this object only. */
function isOfOne(error: unknown): boolean {
  return error instanceof KubernetesApiError && [400, 403, 404, 409, 422].includes(error.status)
}
