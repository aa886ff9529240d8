import { type Denial, deny } from '../../call/index.ts'
import type { Kind } from './kinds.ts'

/** `k8sOps`, as far as it says where something may be done. */
export interface ReachConfig {
  /** Empty: all. */
  readonly namespaces: readonly string[]
  readonly allowClusterScoped: boolean
  readonly writes: {
    /** Empty: those that may be read. */
    readonly namespaces: readonly string[]
    readonly maxReplicas: number
  }
}

/** Nobody reads Secrets here, whatever the cluster would allow. */
export const NO_SECRETS: Denial = deny('policy_denied', 'Secrets cannot be read here')

/** Which parts of the cluster may be read and changed (docs/spec/gateway.md, `k8sOps`). */
export class ClusterScope {
  readonly #config: ReachConfig
  readonly #read: ReadonlySet<string>
  readonly #written: ReadonlySet<string>

  constructor(config: ReachConfig) {
    this.#config = config
    this.#read = new Set(config.namespaces)
    this.#written = new Set(config.writes.namespaces)
  }

  /** Why nothing in a namespace may be read. `null` means all of them at once. */
  readFault(namespace: string | null): Denial | null {
    if (this.#read.size === 0) return null
    if (namespace === null) return deny('policy_denied', `name one of the namespaces: ${[...this.#read].join(', ')}`)
    if (this.#read.has(namespace)) return null
    return deny('policy_denied', `k8sOps.namespaces does not name the namespace ${namespace}`)
  }

  /** Why objects of a kind may not be read there: what stands in no namespace needs a leave of its own. */
  kindFault({ kind, namespaced }: Kind, namespace: string | null): Denial | null {
    if (namespaced) return this.readFault(namespace)
    if (this.#config.allowClusterScoped) return null
    return deny('policy_denied', `${kind} stands in no namespace, which k8sOps.allowClusterScoped does not allow`)
  }

  /** Where something may be written it may be read as well. */
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
