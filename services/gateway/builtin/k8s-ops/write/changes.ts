import { rfc3339 } from '@plat/core'
import type { ClusterRequest } from '../api.ts'

/** A change of the cluster that a tool can make. */
export interface Change {
  readonly request: ClusterRequest & { readonly method: 'PATCH' | 'DELETE' }
  /** Description for approvers. */
  readonly summary: string
  /** Equivalent command. */
  readonly kubectl: string
}

/** An object of a kind that has replicas or is rolled out. */
export interface Workload {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** Field manager recorded by the cluster. */
const FIELD_MANAGER = { fieldManager: 'plat-k8s' }

export function scaling(what: Workload, replicas: number): Change {
  return {
    request: { method: 'PATCH', path: `${pathTo(what)}/scale`, query: FIELD_MANAGER, patch: { spec: { replicas } } },
    summary: `scale ${describe(what)} to ${replicas} replicas`,
    kubectl: `kubectl -n ${what.namespace} scale ${what.kind.toLowerCase()}/${what.name} --replicas=${replicas}`,
  }
}

/** `now`: milliseconds since the epoch. As kubectl does: a changed template triggers a rollout. */
export function restarting(what: Workload, now: number): Change {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': rfc3339(now) }
  const patch = { spec: { template: { metadata: { annotations } } } }
  return {
    request: { method: 'PATCH', path: pathTo(what), query: FIELD_MANAGER, patch },
    summary: `restart ${describe(what)}`,
    kubectl: `kubectl -n ${what.namespace} rollout restart ${what.kind.toLowerCase()}/${what.name}`,
  }
}

export function deletingPod(what: Pick<Workload, 'namespace' | 'name'>): Change {
  return {
    request: { method: 'DELETE', path: `/api/v1/namespaces/${what.namespace}/pods/${encodeURIComponent(what.name)}` },
    summary: `delete Pod ${what.namespace}/${what.name}`,
    kubectl: `kubectl -n ${what.namespace} delete pod/${what.name}`,
  }
}

function pathTo({ kind, namespace, name }: Workload): string {
  return `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${encodeURIComponent(name)}`
}

function describe({ kind, namespace, name }: Workload): string {
  return `${kind} ${namespace}/${name}`
}
