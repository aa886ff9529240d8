import { API_VERSION, isClusterKind, isKind, type Kind, kinds } from '../../kinds/kinds.ts'
import { GROUP, VERSION } from '../error.ts'

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const STATUS_VERBS = ['get', 'patch', 'update']
const READ_VERBS = ['get', 'list']

const allKinds = Object.keys(kinds).filter(isKind)

function namesOf(kind: Kind) {
  const { plural, shortNames, categories } = kinds[kind]
  return { plural, singular: kind.toLowerCase(), shortNames: [...shortNames], categories: [...categories] }
}

/** `/api`. */
export function coreVersions(): object {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
}

/** `/api/v1`: of the built-in kinds, only namespaces. */
export function coreResources(): object {
  const namespaces = { name: 'namespaces', singularName: 'namespace', namespaced: false, kind: 'Namespace' }
  return {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [{ ...namespaces, verbs: READ_VERBS, shortNames: ['ns'] }],
  }
}

/** `/apis/plat.dev`. */
export function group(): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...ourGroup() }
}

/** `/apis`. */
export function groups(): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: [ourGroup()] }
}

function ourGroup(): object {
  const version = { groupVersion: API_VERSION, version: VERSION }
  return { name: GROUP, versions: [version], preferredVersion: version }
}

/** `/apis/plat.dev/v1alpha1`. */
export function resources(): object {
  const rows = allKinds.flatMap((kind) => {
    const { plural, singular, shortNames, categories } = namesOf(kind)
    const namespaced = !isClusterKind(kind)
    const names = { singularName: singular, shortNames, categories }
    return [
      { name: plural, ...names, namespaced, kind, verbs: VERBS },
      { name: `${plural}/status`, singularName: '', namespaced, kind, verbs: STATUS_VERBS },
    ]
  })
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: API_VERSION, resources: rows }
}

/** Media type of the aggregated form, in request and response. */
export const AGGREGATED_TYPE = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** `/api` and `/apis` with everything below them, in one response. */
export function aggregated(which: 'core' | 'groups'): object {
  const item = which === 'core' ? coreItem() : groupItem()
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items: [item] }
}

function groupItem(): object {
  return {
    metadata: { name: GROUP, creationTimestamp: null },
    versions: [{ version: VERSION, freshness: 'Current', resources: allKinds.map(discovered) }],
  }
}

function discovered(kind: Kind): object {
  const { plural, singular, shortNames, categories } = namesOf(kind)
  const responseKind = { group: GROUP, version: VERSION, kind }
  return {
    resource: plural,
    responseKind,
    scope: isClusterKind(kind) ? 'Cluster' : 'Namespaced',
    singularResource: singular,
    verbs: VERBS,
    shortNames,
    categories,
    subresources: [{ subresource: 'status', responseKind, verbs: STATUS_VERBS }],
  }
}

function coreItem(): object {
  const namespaces = {
    resource: 'namespaces',
    responseKind: { group: '', version: 'v1', kind: 'Namespace' },
    scope: 'Cluster',
    singularResource: 'namespace',
    verbs: READ_VERBS,
    shortNames: ['ns'],
  }
  return {
    metadata: { creationTimestamp: null },
    versions: [{ version: 'v1', freshness: 'Current', resources: [namespaces] }],
  }
}

/** `/version`: the Kubernetes version of the protocol. */
export function version(plat: string): object {
  return { major: '1', minor: '34', gitVersion: `v1.34.0+plat-${plat}`, goVersion: '', platform: '' }
}
