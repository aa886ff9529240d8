import { type Clock, ExpiringMap } from '@plat/core'
import { type ApiSession, type Members, objectsIn, type Refused, refused } from './api.ts'
import { NO_SECRETS } from './cluster-scope.ts'

/** Lists of kinds that are kept, one for each version of a group. */
const MAX_KEPT = 64
/** How long a list of kinds is taken as it was, in milliseconds: a kind that is installed meanwhile is found after it. */
const KEPT_MS = 60_000

/** A kind of objects as the API server serves it. */
export interface Kind {
  readonly apiVersion: string
  readonly kind: string
  /** As paths name it: `deployments`. */
  readonly plural: string
  readonly namespaced: boolean
}

/** What a caller names. */
export interface KindName {
  readonly kind: string
  readonly apiVersion?: string
}

/** Where kinds live that everybody knows. */
const USUAL: Readonly<Record<string, readonly string[]>> = {
  v1: [
    'Pod',
    'Service',
    'ConfigMap',
    'Event',
    'Namespace',
    'Node',
    'PersistentVolume',
    'PersistentVolumeClaim',
    'ServiceAccount',
    'Endpoints',
    'ResourceQuota',
    'LimitRange',
    'ReplicationController',
  ],
  'apps/v1': ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'],
  'batch/v1': ['Job', 'CronJob'],
  'networking.k8s.io/v1': ['Ingress', 'IngressClass', 'NetworkPolicy'],
  'autoscaling/v2': ['HorizontalPodAutoscaler'],
  'policy/v1': ['PodDisruptionBudget'],
  'discovery.k8s.io/v1': ['EndpointSlice'],
  'storage.k8s.io/v1': ['StorageClass'],
  'coordination.k8s.io/v1': ['Lease'],
  'rbac.authorization.k8s.io/v1': ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'],
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition'],
}

const VERSION_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(USUAL).flatMap(([version, kinds]) => kinds.map((kind) => [kind.toLowerCase(), version])),
)

/** Whether a kind or the plural of one is that of Secrets, in whatever group and however it is written. */
export function isSecret(name: string): boolean {
  return /^secrets?$/i.test(name)
}

/** Finds kinds by the API server's own lists, so that custom resources are found like all others. */
export class Kinds {
  readonly #known: ExpiringMap<readonly Kind[]>
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
    this.#known = new ExpiringMap({ clock, cap: MAX_KEPT })
  }

  async find(
    visit: ApiSession,
    { kind, apiVersion = VERSION_OF.get(kind.toLowerCase()) }: KindName,
  ): Promise<Kind | Refused> {
    if (apiVersion === undefined) return visit.fails(`arguments/apiVersion: say which one ${kind} belongs to`)
    const served = this.#known.get(apiVersion) ?? (await this.#read(visit, apiVersion))
    if ('answer' in served) return served
    const wanted = kind.toLowerCase()
    const found = served.find((one) => one.kind.toLowerCase() === wanted || one.plural === wanted)
    if (found === undefined) return visit.fails(`arguments/kind: ${apiVersion} has no kind ${kind}`)
    // Asked of what is served, too: a list of kinds could give Secrets another name.
    return isSecret(found.kind) || isSecret(found.plural) ? refused(NO_SECRETS) : found
  }

  async #read(visit: ApiSession, apiVersion: string): Promise<readonly Kind[] | Refused> {
    const answer = await visit.object({ path: apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}` })
    if (answer.kind === 'refused') return answer
    const kinds = objectsIn(answer.value, 'resources').flatMap((one) => kindOf(apiVersion, one))
    this.#known.insert(apiVersion, kinds, this.#clock.now() + KEPT_MS)
    return kinds
  }
}

/** A subresource, such as `pods/log`, is no kind of its own. */
function kindOf(apiVersion: string, { name, kind, namespaced }: Members): Kind[] {
  if (typeof name !== 'string' || !/^[a-z0-9-]+$/.test(name) || typeof kind !== 'string') return []
  return [{ apiVersion, kind, plural: name, namespaced: namespaced === true }]
}

/** The path of the objects of a kind, or of one. `namespace` null: in all of them, or of a kind without. */
export function pathOf({ apiVersion, plural }: Kind, namespace: string | null, name?: string): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const within = namespace === null ? '' : `/namespaces/${namespace}`
  return `${group}${within}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}
