import { isObject } from '@plat/core'
import { type Members, member, textOf } from '@plat/kubernetes'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { isStop } from '../proof/parts/verdict.ts'
import { unavailable, type Watched } from './refusals.ts'

/** A kind of object, and where the API server has it. */
export interface ResourceKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
}

/** The kinds that a pod is followed through, and those that say what its session may do. */
export const kinds = {
  sandbox: { group: 'agents.x-k8s.io', version: 'v1beta1', kind: 'Sandbox', plural: 'sandboxes' },
  pool: {
    group: 'extensions.agents.x-k8s.io',
    version: 'v1beta1',
    kind: 'SandboxWarmPool',
    plural: 'sandboxwarmpools',
  },
  claim: { group: 'extensions.agents.x-k8s.io', version: 'v1beta1', kind: 'SandboxClaim', plural: 'sandboxclaims' },
  session: { group: 'plat.dev', version: 'v1alpha1', kind: 'AgentSession', plural: 'agentsessions' },
  agent: { group: 'plat.dev', version: 'v1alpha1', kind: 'Agent', plural: 'agents' },
  tier: { group: 'plat.dev', version: 'v1alpha1', kind: 'TrustTier', plural: 'trusttiers' },
} as const satisfies Record<string, ResourceKind>

/** An object as the API server answered it. */
export interface KubernetesObject {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly deleting: boolean
  /** Path of the collection that it is in. */
  readonly path: string
  readonly metadata: Members
  readonly spec: Members
  readonly status: Members
}

/** The controller of an object: the one owner reference with `controller: true`. */
export interface Owner {
  readonly group: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Reads one object; null when there is none of that name. `namespace` null: the kind has cluster scope. Throws 503. */
export async function readObject(
  api: ClusterApi,
  kind: ResourceKind,
  namespace: string | null,
  name: string,
): Promise<KubernetesObject | null> {
  // Without a name the path would be that of the whole collection.
  if (name === '') return null
  const path = collectionPath(kind, namespace)
  const answer = await api.ask({ method: 'GET', path: `${path}/${encodeURIComponent(name)}` })
  if (isStop(answer)) throw unavailable(answer.reason)
  if (answer.status === 404) return null
  if (answer.status !== 200) throw unavailable(`the API server answers for a ${kind.kind} with status ${answer.status}`)
  return objectOf(answer.body, path)
}

/** Reads an answer about one object of the collection at `path`. */
export function objectOf(body: Members, path: string): KubernetesObject {
  const metadata = member(body, 'metadata')
  return {
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
    resourceVersion: textOf(metadata, 'resourceVersion'),
    deleting: metadata.deletionTimestamp !== undefined,
    path,
    metadata,
    spec: member(body, 'spec'),
    status: member(body, 'status'),
  }
}

/** The controller of an object; null when it has none. */
export function controllerOf(metadata: Members): Owner | null {
  const references: readonly unknown[] = Array.isArray(metadata.ownerReferences) ? metadata.ownerReferences : []
  const controller = references.filter(isObject).find((reference) => reference.controller === true)
  if (controller === undefined) return null
  const [group = '', version] = textOf(controller, 'apiVersion').split('/')
  return {
    group: version === undefined ? '' : group,
    kind: textOf(controller, 'kind'),
    name: textOf(controller, 'name'),
    uid: textOf(controller, 'uid'),
  }
}

/** Is the owner of this kind? Its version may be another one than the broker reads. */
export function isOwner(owner: Owner | null, { group, kind }: ResourceKind): owner is Owner {
  return owner !== null && owner.group === group && owner.kind === kind && owner.name !== '' && owner.uid !== ''
}

/** Returns the watch parameters with which a long-poll sees the object change. */
export function watched({ path, name, resourceVersion }: KubernetesObject): Watched {
  return { path, name, resourceVersion }
}

function collectionPath({ group, version, plural }: ResourceKind, namespace: string | null): string {
  const within = namespace === null ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `/apis/${group}/${version}${within}/${plural}`
}
