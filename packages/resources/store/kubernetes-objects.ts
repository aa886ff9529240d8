import { isObject } from '@plat/core'
import { KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { FieldProblem } from '../check.ts'
import { API_VERSION, isClusterKind, type Kind, kinds, type Manifest, type Resource } from '../kinds/kinds.ts'
import { isManifest, isStatus, validate, withDefaults } from '../validate.ts'
import type { Key } from './store.ts'

/** Converts the ERROR line of a watch. */
export function faultOf(status: Members): KubernetesApiError {
  const code = typeof status.code === 'number' ? status.code : 0
  return new KubernetesApiError(textOf(status, 'message') || 'the API server ends the watch', code)
}

/** Path of all objects of a kind, in one namespace or, with '', in all. */
export function collection(kind: Kind, namespace: string): string {
  const scope = isClusterKind(kind) || namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `/apis/${API_VERSION}${scope}/${kinds[kind].plural}`
}

export function pathOf(kind: Kind, { namespace, name }: Key): string {
  return `${collection(kind, namespace)}/${encodeURIComponent(name)}`
}

export function keyOf(found: Members): Key {
  const metadata = member(found, 'metadata')
  return { namespace: textOf(metadata, 'namespace'), name: textOf(metadata, 'name') }
}

/** Returns the metadata written by users; the server adds more. */
function writtenMetadata(found: Members): object {
  const { labels, annotations } = member(found, 'metadata')
  return { ...keyOf(found), ...(isObject(labels) && { labels }), ...(isObject(annotations) && { annotations }) }
}

/** Decodes a received object with defaults filled in; returns all its problems when it is invalid. */
export function readObject<K extends Kind>(kind: K, found: Members): Resource<K> | FieldProblem[] {
  const metadata = member(found, 'metadata')
  const manifest = withDefaults(kind, {
    apiVersion: API_VERSION,
    kind,
    metadata: writtenMetadata(found),
    spec: found.spec,
  })
  const problems = validate(kind, manifest)
  if (problems.length > 0) return problems
  const value: unknown = manifest
  if (!isManifest(kind, value)) return [{ path: '', message: 'does not fit its schema' }]
  return {
    ...value,
    metadata: {
      ...value.metadata,
      uid: textOf(metadata, 'uid'),
      resourceVersion: textOf(metadata, 'resourceVersion'),
      generation: typeof metadata.generation === 'number' ? metadata.generation : 1,
      creationTimestamp: textOf(metadata, 'creationTimestamp'),
    },
    ...(isStatus(kind, found.status) && { status: found.status }),
  }
}

/** Annotations of cluster tools. */
const OF_TOOLS = 'kubectl.kubernetes.io/'

/** Returns an object without the annotations of cluster tools. */
export function withoutTools<K extends Kind>(object: Manifest<K>): Manifest<K> {
  const { annotations, ...metadata } = object.metadata
  const own = Object.entries(annotations ?? {}).filter(([name]) => !name.startsWith(OF_TOOLS))
  return { ...object, metadata: { ...metadata, ...(own.length > 0 && { annotations: Object.fromEntries(own) }) } }
}

/** Returns the managers of fields of the spec. */
export function managersOf(found: Members): readonly string[] {
  return managedFieldsOf(found)
    .filter((entry) => entry.subresource === undefined && 'f:spec' in member(entry, 'fieldsV1'))
    .map((entry) => textOf(entry, 'manager'))
}

function managedFieldsOf(found: Members): readonly Members[] {
  const { managedFields } = member(found, 'metadata')
  return Array.isArray(managedFields) ? managedFields.filter(isObject) : []
}

/** Returns the replacement of an object, at the version that was read. The owner takes over fields of other managers. */
export function replacing(found: Members, { apiVersion, kind, metadata, spec }: Manifest, owner: string): object {
  const ofStatus = managedFieldsOf(found).filter((entry) => entry.subresource !== undefined)
  const mine = { manager: owner, operation: 'Update', apiVersion, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } }
  const { annotations = {}, labels = {} } = metadata
  const ofTools = Object.entries(member(member(found, 'metadata'), 'annotations')).filter(([name]) =>
    name.startsWith(OF_TOOLS),
  )
  return {
    apiVersion,
    kind,
    metadata: {
      ...member(found, 'metadata'),
      labels,
      annotations: { ...Object.fromEntries(ofTools), ...annotations },
      managedFields: [...ofStatus, mine],
    },
    spec,
  }
}

export function problemsOf({ causes, message }: KubernetesApiError): FieldProblem[] {
  if (causes.length === 0) return [{ path: '', message }]
  return causes.map(({ field, message: why }) => ({ path: field, message: why }))
}
