import { type Clock, decodeBase64url, encodeBase64url, isObject } from '@plat/core'
import { isClusterKind, isKind, kinds } from '../kinds/kinds.ts'
import type { ResourceStore } from '../store/store.ts'
import { notFound, RestError } from './error.ts'
import { listOf, okResponse, type RestRequest, type RestResponse, wireOf } from './rest.ts'
import type { Target } from './route.ts'
import { fieldSelector, labelSelector } from './selectors.ts'
import { type IncludeObject, tableOf } from './table.ts'

export interface ReadParts {
  readonly store: ResourceStore
  readonly clock: Clock
  /** One line for each object that does not load, beginning with its path; shown to clients that list. */
  readonly problems: () => readonly string[]
}

/** Form of a response: objects, or a table. */
export type Form = 'objects' | { readonly includeObject: IncludeObject }

const TABLE = /^application\/json\b(?=.*;\s*as=table\b)(?=.*;\s*v=v1\s*(?:;|$))(?=.*;\s*g=meta\.k8s\.io\b)/i
const PLAIN = /^(?:application\/json|application\/\*|\*\/\*)\s*(?:;\s*(?:q|charset)=[^;]*)*$/i

/** Returns the first supported form of the `accept` header. Throws 406. */
export function formOf({ accept, query }: Pick<RestRequest, 'accept' | 'query'>): Form {
  for (const type of accept === '' ? ['*/*'] : accept.split(',').map((one) => one.trim())) {
    if (PLAIN.test(type)) return 'objects'
    if (TABLE.test(type)) return { includeObject: includeOf(query.get('includeObject')) }
  }
  throw new RestError(406, 'only application/json is answered, for lists and objects also as=Table;v=v1;g=meta.k8s.io')
}

function includeOf(text: string | null): IncludeObject {
  if (text === null || text === '') return 'Metadata'
  if (text === 'None' || text === 'Metadata' || text === 'Object') return text
  throw new RestError(
    400,
    `includeObject: Unsupported value: "${text}": supported values: "None", "Metadata", "Object"`,
  )
}

/** One object. */
export async function getOne({ store, clock }: ReadParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const form = formOf(request)
  const { kind, namespace, name } = target
  const object = await store.get(kind, { namespace, name: name ?? '' })
  if (object === null) throw notFound(kind, name ?? '')
  if (form === 'objects') return okResponse(wireOf(object))
  const metadata = { resourceVersion: object.metadata.resourceVersion }
  return okResponse(tableOf(kind, [object], { ...form, metadata, now: clock.now() }))
}

/** Maximum number of problems shown for one list. */
const WARNINGS_MAX = 5

/** Returns a list: selectors, pages, and problems as warnings. */
export async function list(parts: ReadParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const form = formOf(request)
  const { query } = request
  const { kind, namespace } = target
  const labels = labelSelector(query.get('labelSelector') ?? '')
  const fields = fieldSelector(query.get('fieldSelector') ?? '')
  const limit = countOf(query, 'limit')
  const from = continueOf(query.get('continue') ?? '')
  const page = await parts.store.list(kind, namespace === '' ? {} : { namespace })
  expectRevision(query, page.revision)
  const chosen = page.items.filter((object) => labels(object) && fields(object))
  const rest = from === null ? chosen : chosen.filter(({ metadata }) => placeOf(metadata) > from.after)
  const items = limit === 0 ? rest : rest.slice(0, limit)
  // A client that watches after a paged list must receive the changes since its first page.
  const resourceVersion = from?.revision ?? page.revision
  const last = items.at(-1)
  const metadata = {
    resourceVersion,
    ...(last !== undefined &&
      items.length < rest.length && {
        continue: continued({ revision: resourceVersion, after: placeOf(last.metadata) }),
        remainingItemCount: rest.length - items.length,
      }),
  }
  const folder = `${kinds[kind].plural}/${namespace === '' ? '' : `${namespace}/`}`
  const warnings = parts.problems().filter((line) => line.startsWith(folder))
  const body =
    form === 'objects'
      ? listOf(kind, items, metadata)
      : tableOf(kind, items, { ...form, metadata, now: parts.clock.now() })
  return okResponse(body, { warnings: warnings.slice(0, WARNINGS_MAX) })
}

/** The order of lists. */
function placeOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`
}

/** Returns a whole number of the query, default 0. Throws 400. */
export function countOf(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? ''
  if (text === '') return 0
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new RestError(400, `${name}: Invalid value: "${text}": must be a whole number`)
}

/** Only the present state can be listed. */
function expectRevision(query: URLSearchParams, revision: string): void {
  const requested = query.get('resourceVersion') ?? ''
  if (query.get('resourceVersionMatch') !== 'Exact' || requested === revision) return
  throw new RestError(410, `the resourceVersion ${requested} is not kept: list without resourceVersionMatch=Exact`)
}

/** State of a paged list. */
interface Continue {
  /** Of the first page. */
  readonly revision: string
  readonly after: string
}

function continued(at: Continue): string {
  return encodeBase64url(Buffer.from(JSON.stringify(at)))
}

function continueOf(text: string): Continue | null {
  if (text === '') return null
  try {
    const value: unknown = JSON.parse(Buffer.from(decodeBase64url(text) ?? []).toString())
    if (isObject(value) && typeof value.revision === 'string' && typeof value.after === 'string') {
      return { revision: value.revision, after: value.after }
    }
  } catch {
    // Objects that cannot be read are not listed.
  }
  throw new RestError(400, 'continue key is not valid: list again without it')
}

/** Returns the namespaces that the caller may read: those with objects, and `default`. */
export async function namespaces(
  { store }: ReadParts,
  { caller }: RestRequest,
  name: string | null,
): Promise<RestResponse> {
  const known = new Set(['default'])
  for (const kind of Object.keys(kinds).filter(isKind)) {
    if (isClusterKind(kind)) continue
    for (const { metadata } of (await store.list(kind, {})).items) known.add(metadata.namespace)
  }
  const seen = [...known].filter((one) => caller.may('read', one)).toSorted()
  if (name === null) {
    return okResponse({ kind: 'NamespaceList', apiVersion: 'v1', metadata: {}, items: seen.map(namespaceOf) })
  }
  if (seen.includes(name)) return okResponse(namespaceOf(name))
  throw new RestError(404, `namespaces "${name}" not found`, { details: { name, kind: 'namespaces' } })
}

function namespaceOf(name: string): object {
  return { kind: 'Namespace', apiVersion: 'v1', metadata: { name }, status: { phase: 'Active' } }
}
