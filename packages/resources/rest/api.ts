import { base32, type Clock, type Ids } from '@plat/core'
import type { Log } from '@plat/process'
import { isClusterKind, kinds } from '../kinds/kinds.ts'
import type { ResourceStore } from '../store/store.ts'
import {
  AGGREGATED_TYPE,
  aggregated,
  coreResources,
  coreVersions,
  group,
  groups,
  resources,
  version,
} from './documents/discovery.ts'
import { OpenApi } from './documents/openapi.ts'
import { selfReview } from './documents/reviews.ts'
import { GROUP, RestError } from './error.ts'
import { getOne, list, namespaces, type ReadParts } from './reads.ts'
import { okResponse, type RestRequest, type RestResponse } from './rest.ts'
import { type DocumentName, type Route, routeOf, type Target } from './route.ts'
import { isOn, watch } from './watch.ts'
import { changeOf, create, patch, remove, removeAll, replace, type WriteParts } from './writes.ts'

export interface ResourceApiOptions {
  readonly store: ResourceStore
  /** One line for each object that does not load, beginning with its path. Default: none. */
  readonly problems?: () => readonly string[]
  /** Product version, shown beside that of the protocol. */
  readonly version: string
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

export { RestError } from './error.ts'
export { JSON_TYPE, type RestCaller, type RestRequest, type RestResponse } from './rest.ts'

/** The part of the Kubernetes API that clients of these kinds need, over any store. */
export interface ResourceApi {
  /** Handles every request, with a Status for refusals; never rejects. */
  handle(request: RestRequest): Promise<RestResponse>
}

/** Random bytes of a generated name. */
const NAME_BYTES = 5

export function createResourceApi(options: ResourceApiOptions): ResourceApi {
  return new Api(options)
}

export function refusal(fault: RestError): RestResponse {
  return okResponse(fault.body(), { status: fault.status })
}

type Handler = (parts: ReadParts & WriteParts, target: Target, request: RestRequest) => Promise<RestResponse>

class Api implements ResourceApi {
  readonly #parts: ReadParts & WriteParts
  readonly #log: Log
  readonly #version: string
  readonly #openapi = new OpenApi()

  constructor({ store, problems = () => [], version: ours, clock, ids, log }: ResourceApiOptions) {
    const freshName = () => base32(ids.random(NAME_BYTES))
    this.#parts = { store, clock, problems, freshName }
    this.#log = log
    this.#version = ours
  }

  async handle(request: RestRequest): Promise<RestResponse> {
    let change: string | null = null
    try {
      const route = routeOf(request.path)
      if (route.to === 'objects' && request.method !== 'GET') change = changeOf(route.target, request)
      return await this.#answer(route, request)
    } catch (error) {
      if (error instanceof RestError) return { ...refusal(error), change }
      this.#log.error({ err: error, path: request.path }, 'a request of the resource API failed')
      return { ...refusal(new RestError(500, 'the request failed on our side')), change }
    }
  }

  #answer(route: Route, request: RestRequest): Promise<RestResponse> | RestResponse {
    if (route.to === 'objects') return this.#objects(route.target, request)
    if (route.to === 'review') {
      if (request.method !== 'POST') throw notAllowed(request)
      return okResponse(selfReview(request.caller), { status: 201 })
    }
    if (request.method !== 'GET') throw notAllowed(request)
    return route.to === 'namespaces'
      ? namespaces(this.#parts, request, route.name)
      : this.#document(route.document, request)
  }

  #objects(target: Target, request: RestRequest): Promise<RestResponse> {
    const found = handlerOf(target, request)
    if (found === null) throw notAllowed(request)
    const [verb, handler] = found
    expectAllowed(target, request, verb)
    return handler(this.#parts, target, request)
  }

  #document(name: DocumentName, { accept }: RestRequest): RestResponse {
    const isAggregated = accept.replaceAll(' ', '').includes(AGGREGATED_TYPE)
    if (isAggregated && (name === 'core' || name === 'groups')) {
      return okResponse(aggregated(name), { contentType: AGGREGATED_TYPE })
    }
    return okResponse(this.#plain(name))
  }

  #plain(name: DocumentName): object {
    switch (name) {
      case 'version':
        return version(this.#version)
      case 'core':
        return coreVersions()
      case 'coreResources':
        return coreResources()
      case 'groups':
        return groups()
      case 'group':
        return group()
      case 'resources':
        return resources()
      case 'openapi':
        return this.#openapi.index()
      case 'openapiOfGroup':
        return this.#openapi.document()
    }
  }
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

const READS: ReadonlySet<Verb> = new Set(['get', 'list', 'watch'])

/** Returns verb and handler of a method on a collection or an object; null when it has none. */
function handlerOf(target: Target, { method, query }: RestRequest): readonly [Verb, Handler] | null {
  if (target.name === null) {
    if (method === 'GET') return isOn(query, 'watch') ? ['watch', watch] : ['list', list]
    if (target.namespace === '' && !isClusterKind(target.kind)) return null
    if (method === 'POST') return ['create', create]
    return method === 'DELETE' ? ['deletecollection', removeAll] : null
  }
  if (method === 'GET') return ['get', getOne]
  if (method === 'PUT') return ['update', replace]
  if (method === 'PATCH') return ['patch', patch]
  return method === 'DELETE' && target.subresource === null ? ['delete', remove] : null
}

/** Throws 403. */
function expectAllowed({ kind, namespace, name }: Target, { caller }: RestRequest, verb: Verb): void {
  if (caller.may(READS.has(verb) ? 'read' : 'write', namespace === '' ? null : namespace)) return
  const { plural } = kinds[kind]
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const which = name === null ? '' : ` "${name}"`
  throw new RestError(
    403,
    `${plural}.${GROUP}${which} is forbidden: User "${caller.name}" cannot ${verb} resource "${plural}" in API group "${GROUP}" ${where}`,
    { details: { ...(name !== null && { name }), group: GROUP, kind: plural } },
  )
}

function notAllowed({ method }: RestRequest): RestError {
  return new RestError(405, `the server does not allow ${method} on the requested resource`)
}
