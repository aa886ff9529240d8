import { type Clock, canonicalJson, PeriodicTask, reasonOf } from '@plat/core'
import { isMembers, type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'

const API = '/apis/plat.dev/v1alpha1'
/** Who the gateway is in `managedFields`. */
const OWNER = 'plat-gateway'
/** Says of an object whose copy it is. */
const LABEL = 'plat.dev/mirrored-by'
/** How often what could not be written is tried again, in milliseconds. */
const RETRY_MS = 5_000
/** How often everything is compared with the cluster, whoever may have changed it there, in milliseconds. */
const COMPARE_EVERY_MS = 60_000
/** How long changes gather before they are written, in milliseconds: who revokes many at once asks for one look at all. */
const GATHER_MS = 100
/** Objects of one page of a list. */
const PAGE = 500

/** One object as it should stand in the cluster. */
export interface Mirrored {
  readonly namespace: string
  readonly name: string
  readonly spec: Members
}

export interface MirrorParts {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly kind: string
  readonly plural: string
  /** Tells our objects from those of other gateways: the value of a label. */
  readonly owner: string
  /** Everything that should stand there now. */
  readonly wanted: () => readonly Mirrored[]
  readonly clock: Clock
  readonly log: Log
}

/**
 * Keeps copies in the cluster of what is kept elsewhere: whatever should stand there is applied, and what is ours and should not any more
 * is deleted. It compares states and passes no changes on, so that nothing is lost while the API server or this process is away.
 */
export class Mirror {
  readonly #parts: MirrorParts
  /** What stands there as far as is known, by path; null: it must be asked. */
  #there: Map<string, string> | null = null
  #askedAt = 0
  #due = true
  #fault: string | null = null
  #rounds: PeriodicTask | null = null
  #isGathering = false
  #signal: AbortSignal | undefined

  constructor(parts: MirrorParts) {
    this.#parts = parts
  }

  /** Something should stand there that did not, or the other way round. */
  changed(): void {
    this.#due = true
    if (this.#rounds === null || this.#isGathering) return
    this.#isGathering = true
    this.#parts.clock.after(GATHER_MS, () => {
      this.#isGathering = false
      void this.#rounds?.now()
    })
  }

  /** Works until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#signal = signal
    // What another replica wrote meanwhile is not known.
    this.#there = null
    const rounds = new PeriodicTask({
      clock: this.#parts.clock,
      everyMs: RETRY_MS,
      job: () => this.#round(),
      onFault: (error) => this.#tell(reasonOf(error)),
    })
    this.#rounds = rounds
    void rounds.now()
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#rounds = null
    await rounds.close()
  }

  async #round(): Promise<void> {
    const { clock } = this.#parts
    const isOld = this.#there === null || clock.monotonic() - this.#askedAt >= COMPARE_EVERY_MS
    if (!isOld && !this.#due) return
    this.#due = true
    if (isOld) {
      this.#there = await this.#ask()
      this.#askedAt = clock.monotonic()
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
    this.#tell(null)
  }

  /** Objects that carry our label, by path. */
  async #ask(): Promise<Map<string, string>> {
    const { api, plural, owner } = this.#parts
    const there = new Map<string, string>()
    let from = ''
    do {
      const query = { labelSelector: `${LABEL}=${owner}`, limit: String(PAGE), ...(from !== '' && { continue: from }) }
      const { body } = await api.ask({ method: 'GET', path: `${API}/${plural}`, query, ...this.#stop() })
      for (const object of Array.isArray(body.items) ? body.items.filter(isMembers) : []) {
        const { namespace, name, labels } = member(object, 'metadata')
        // An API server that knows no selectors would make everything ours.
        if (typeof namespace !== 'string' || typeof name !== 'string') continue
        if (!isMembers(labels) || labels[LABEL] !== owner) continue
        there.set(this.#pathOf({ namespace, name }), canonicalJson(member(object, 'spec')))
      }
      from = textOf(member(body, 'metadata'), 'continue')
    } while (from !== '')
    return there
  }

  /** What the API server does not take of one object keeps no other from being written. */
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

  /** A fault is told once, until it changes or is over. */
  #tell(fault: string | null): void {
    const { kind, log } = this.#parts
    if (fault === this.#fault || this.#signal?.aborted === true) return
    this.#fault = fault
    if (fault === null) log.info({ kind }, 'copies in the cluster are written again')
    else log.warn({ kind, error: fault }, 'copies in the cluster cannot be written: they follow once they can')
  }
}

/** Is it this object that is refused, and not all of them? */
function isOfOne(error: unknown): boolean {
  return error instanceof KubernetesApiError && [400, 403, 404, 409, 422].includes(error.status)
}
