import { rfc3339 } from '@plat/core'
import type { ClusterRequest } from '../api.ts'

/** Something that a tool can do to the cluster, before anybody has done it. */
export interface Change {
  readonly request: ClusterRequest & { readonly method: 'PATCH' | 'DELETE' }
  /** What a person reads who decides. */
  readonly shown: string
  /** How the same is done by hand. */
  readonly kubectl: string
}

/** An object of a kind that has replicas or is rolled out. */
export interface Workload {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** Named in what the cluster keeps of who changed which field. */
const FIELD_MANAGER = { fieldManager: 'plat-k8s' }

export function scaling(what: Workload, replicas: number): Change {
  return {
    request: { method: 'PATCH', path: `${pathTo(what)}/scale`, query: FIELD_MANAGER, patch: { spec: { replicas } } },
    shown: `scale ${shownAs(what)} to ${replicas} replicas`,
    kubectl: `kubectl -n ${what.namespace} scale ${what.kind.toLowerCase()}/${what.name} --replicas=${replicas}`,
  }
}

/** `now`: milliseconds since the epoch. What kubectl does: a new template is rolled out like any other. */
export function restarting(what: Workload, now: number): Change {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': rfc3339(now) }
  const patch = { spec: { template: { metadata: { annotations } } } }
  return {
    request: { method: 'PATCH', path: pathTo(what), query: FIELD_MANAGER, patch },
    shown: `restart ${shownAs(what)}`,
    kubectl: `kubectl -n ${what.namespace} rollout restart ${what.kind.toLowerCase()}/${what.name}`,
  }
}

export function deletingPod(what: Pick<Workload, 'namespace' | 'name'>): Change {
  return {
    request: { method: 'DELETE', path: `/api/v1/namespaces/${what.namespace}/pods/${encodeURIComponent(what.name)}` },
    shown: `delete Pod ${what.namespace}/${what.name}`,
    kubectl: `kubectl -n ${what.namespace} delete pod/${what.name}`,
  }
}

function pathTo({ kind, namespace, name }: Workload): string {
  return `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${encodeURIComponent(name)}`
}

function shownAs({ kind, namespace, name }: Workload): string {
  return `${kind} ${namespace}/${name}`
}
