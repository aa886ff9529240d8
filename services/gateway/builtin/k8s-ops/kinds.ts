import { type Clock, ExpiringMap } from '@plat/core'
import type { Members } from '@plat/kubernetes'
import type { Denial } from '../../call/index.ts'
import { deny } from '../../call/index.ts'
import { type ApiSession, objectsIn, type Refused, refused } from './api.ts'

/** Secrets are never readable, whatever the cluster allows. */
export const NO_SECRETS: Denial = deny('policy_denied', 'Secrets cannot be read here')

/** Maximum number of cached kind lists, one per group and version. */
const MAX_KEPT = 64
/** Cache lifetime of a kind list, in milliseconds: then newly installed kinds are found. */
const KEPT_MS = 60_000

export interface Kind {
  readonly apiVersion: string
  readonly kind: string
  /** Path segment: `deployments`. */
  readonly plural: string
  readonly namespaced: boolean
}

/** Kind and version as named by a caller. */
export interface KindName {
  readonly kind: string
  readonly apiVersion?: string
}

/** Default versions of well-known kinds. */
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

/** Returns whether a kind or plural is that of Secrets, in any group and notation. */
export function isSecret(name: string): boolean {
  return /^secrets?$/i.test(name)
}

/** Resolves kinds by the discovery lists of the API server, including custom resources. */
export class Kinds {
  readonly #known: ExpiringMap<readonly Kind[]>
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
    this.#known = new ExpiringMap({ clock, cap: MAX_KEPT })
  }

  async find(
    session: ApiSession,
    { kind, apiVersion = VERSION_OF.get(kind.toLowerCase()) }: KindName,
  ): Promise<Kind | Refused> {
    if (apiVersion === undefined) return session.fails(`arguments/apiVersion: required for ${kind}`)
    const served = this.#known.get(apiVersion) ?? (await this.#read(session, apiVersion))
    if ('answer' in served) return served
    const wanted = kind.toLowerCase()
    const found = served.find((one) => one.kind.toLowerCase() === wanted || one.plural === wanted)
    if (found === undefined) return session.fails(`arguments/kind: ${apiVersion} has no kind ${kind}`)
    // Also checks the served names: a list of kinds could rename Secrets.
    return isSecret(found.kind) || isSecret(found.plural) ? refused(NO_SECRETS) : found
  }

  async #read(session: ApiSession, apiVersion: string): Promise<readonly Kind[] | Refused> {
    const answer = await session.object({
      path: apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`,
    })
    if (answer.kind === 'refused') return answer
    const kinds = objectsIn(answer.value, 'resources').flatMap((one) => kindOf(apiVersion, one))
    this.#known.insert(apiVersion, kinds, this.#clock.now() + KEPT_MS)
    return kinds
  }
}

/** Excludes subresources, such as `pods/log`. */
function kindOf(apiVersion: string, { name, kind, namespaced }: Members): Kind[] {
  if (typeof name !== 'string' || !/^[a-z0-9-]+$/.test(name) || typeof kind !== 'string') return []
  return [{ apiVersion, kind, plural: name, namespaced: namespaced === true }]
}

/** Path of the objects of a kind, or of one. `namespace` is null for all namespaces and for cluster-scoped kinds. */
export function pathOf({ apiVersion, plural }: Kind, namespace: string | null, name?: string): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const within = namespace === null ? '' : `/namespaces/${namespace}`
  return `${group}${within}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}
