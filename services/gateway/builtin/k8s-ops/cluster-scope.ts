import { type Denial, deny } from '../../call/index.ts'
import type { Kind } from './kinds.ts'

/** Members of `k8sOps` that limit namespaces and kinds. */
export interface ReachConfig {
  /** Empty for all. */
  readonly namespaces: readonly string[]
  readonly allowClusterScoped: boolean
  readonly writes: {
    /** Empty for the readable ones. */
    readonly namespaces: readonly string[]
    readonly maxReplicas: number
  }
}

/** Readable and writable parts of the cluster (docs/spec/gateway.md, `k8sOps`). */
export class ClusterScope {
  readonly #config: ReachConfig
  readonly #read: ReadonlySet<string>
  readonly #written: ReadonlySet<string>

  constructor(config: ReachConfig) {
    this.#config = config
    this.#read = new Set(config.namespaces)
    this.#written = new Set(config.writes.namespaces)
  }

  /** Returns why a namespace (null for all) is not readable, or null. */
  readFault(namespace: string | null): Denial | null {
    if (this.#read.size === 0) return null
    if (namespace === null) return deny('policy_denied', `select one of the namespaces: ${[...this.#read].join(', ')}`)
    if (this.#read.has(namespace)) return null
    return deny('policy_denied', `k8sOps.namespaces does not name the namespace ${namespace}`)
  }

  /** Returns why objects of a kind are not readable, or null: cluster-scoped kinds need a separate permission. */
  kindFault({ kind, namespaced }: Kind, namespace: string | null): Denial | null {
    if (namespaced) return this.readFault(namespace)
    if (this.#config.allowClusterScoped) return null
    return deny('policy_denied', `${kind} is cluster-scoped, which k8sOps.allowClusterScoped does not allow`)
  }

  /** Returns why a namespace is not writable, or null. Writable namespaces must be readable. */
  writeFault(namespace: string): Denial | null {
    const fault = this.readFault(namespace)
    if (fault !== null || this.#written.size === 0 || this.#written.has(namespace)) return fault
    return deny('policy_denied', `k8sOps.writes.namespaces does not name the namespace ${namespace}`)
  }

  replicasFault(replicas: number): Denial | null {
    const { maxReplicas } = this.#config.writes
    return replicas <= maxReplicas ? null : deny('policy_denied', `k8sOps.writes.maxReplicas is ${maxReplicas}`)
  }
}
