import { API_VERSION, isClusterKind, isKind, type Kind, kinds } from '../kinds/kinds.ts'
import { RestError } from './error.ts'

/** Objects of a kind, or one of them. */
export interface Target {
  readonly kind: Kind
  /** Empty: every namespace, or a cluster-scoped kind. */
  readonly namespace: string
  /** Null: the collection. */
  readonly name: string | null
  readonly subresource: 'status' | null
}

/** Target of a path. */
export type Route =
  | { readonly to: 'objects'; readonly target: Target }
  | { readonly to: 'document'; readonly document: DocumentName }
  | { readonly to: 'namespaces'; readonly name: string | null }
  | { readonly to: 'review' }

/** Documents that describe the API to clients. */
const DOCUMENTS = {
  '/version': 'version',
  '/api': 'core',
  '/api/v1': 'coreResources',
  '/apis': 'groups',
  '/apis/plat.dev': 'group',
  '/apis/plat.dev/v1alpha1': 'resources',
  '/openapi/v3': 'openapi',
  '/openapi/v3/apis/plat.dev/v1alpha1': 'openapiOfGroup',
} as const

export type DocumentName = (typeof DOCUMENTS)[keyof typeof DOCUMENTS]

const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const NAMESPACES = /^\/api\/v1\/namespaces(?:\/([^/]+))?$/
const OBJECTS = new RegExp(`^/apis/${API_VERSION}(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+)(?:/([^/]+))?)?$`)

/** Returns the object, list or document of a path. Throws 404 and 400. */
export function routeOf(sent: string): Route {
  const path = decoded(sent)
  if (isDocument(path)) return { to: 'document', document: DOCUMENTS[path] }
  if (path === REVIEW) return { to: 'review' }
  const ofNamespaces = NAMESPACES.exec(path)
  if (ofNamespaces !== null) return { to: 'namespaces', name: ofNamespaces[1] ?? null }
  const parts = OBJECTS.exec(path)
  if (parts === null) throw missing()
  const [, namespace = '', plural = '', name = null, subresource = null] = parts
  const kind = Object.keys(kinds)
    .filter(isKind)
    .find((one) => kinds[one].plural === plural)
  if (kind === undefined || (subresource !== null && subresource !== 'status')) throw missing()
  if (isClusterKind(kind) ? namespace !== '' : namespace === '' && name !== null) throw missing()
  return { to: 'objects', target: { kind, namespace, name, subresource } }
}

function isDocument(path: string): path is keyof typeof DOCUMENTS {
  return Object.hasOwn(DOCUMENTS, path)
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
  } catch {
    throw new RestError(400, 'the path is not well-formed')
  }
}

function missing(): RestError {
  return new RestError(404, 'the server could not find the requested resource', { details: {} })
}
