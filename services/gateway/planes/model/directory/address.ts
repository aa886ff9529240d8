import { ALL_ROUTES, type Denial, deny, isDenial, modelScopeOf, type Parsed } from '../../../call/index.ts'
import { dialectOf, dialectOfVerb } from '../dialects/all.ts'
import { modelFault } from '../dialects/checks.ts'
import { messages } from '../dialects/messages.ts'
import { withModel } from '../request.ts'
import { scopeFault, type UnreadRequest, useModelBody } from '../uploads/request.ts'
import type { ListedModel } from './list.ts'

/** Models that a caller may use, by name. */
export interface CallersModels {
  /** Routes whose models only their provider knows. */
  readonly open: readonly string[]
  /** Returns true for a route that the caller may use. */
  has(route: string): boolean
  /** Models that are known without a request to a provider. */
  list(): readonly ListedModel[]
  /** Returns the name by which a model of an open route is found. */
  nameOf(route: string, model: string): string
  /** Returns the route and the model to request of it (null: its own). A denial if the caller may use none or several of this name. */
  find(name: string | null): (ListedModel & { readonly route: string; readonly model: string | null }) | Denial
}

/** Endpoints of Google's API, in both of its versions: `models/<model>:<verb>`, below the address of a route or of all routes. */
const GOOGLE =
  /^\/llm\/(?:([A-Za-z0-9][A-Za-z0-9._-]{0,316})\/)?(v1beta|v1)\/(?:models\/([^?#]{1,512}):([A-Za-z]{1,32})|models(?:\/([^:?#]{1,512}))?)$/

/** An address of Google's API. */
export interface GoogleAddress {
  /** Null: the address of all routes. */
  readonly route: string | null
  /** As encoded in the path; null: the list of models. */
  readonly model: string | null
  /** Null: information about models. */
  readonly verb: string | null
}

/** Returns the parts of an address of Google's API; null for other paths. */
export function googleAddress(path: string): GoogleAddress | null {
  const found = GOOGLE.exec(path)
  if (found === null) return null
  const [, route = null, version, model = null, verb = null, listed = null] = found
  // Below `v1` OpenAI's and Anthropic's clients look for models, whose names may have a colon.
  if (version === 'v1' && (verb === null || dialectOfVerb(verb) === null)) return null
  return { route, model: model ?? listed, verb }
}

/** Reads a request of Google's API. */
export function readGoogle(
  unread: UnreadRequest,
  { route, model, verb }: GoogleAddress,
  models: () => CallersModels,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method, query } = unread.arrival.wire
  const name = model === null ? null : decoded(model)
  if (model !== null && (name === null || modelFault(name) !== null)) return deny('not_found', 'no such model')
  if (verb === null) {
    if (route !== null) return deny('not_found', 'models are listed at /llm/v1beta/models')
    if (method !== 'GET') return only('GET', method)
    return { operation: 'model.info', method: 'models', server: ALL_ROUTES, body: null, parent: null, name }
  }
  const dialect = dialectOfVerb(verb)
  if (dialect === null) return deny('not_found', `no endpoint ${verb}`)
  if (method !== 'POST') return only('POST', method)
  if (dialect.method === 'generateContent' && isStreamed(verb) && new URLSearchParams(query).get('alt') !== 'sse')
    return deny('invalid_request', 'alt must be sse for a stream', { data: { param: 'alt' } })
  return useModelBody(unread, dialect, (body) => {
    const found = route === null ? models().find(name) : { route, model: name }
    if (isDenial(found)) return found
    const { operation, method: endpoint } = dialect
    return {
      operation,
      method: endpoint,
      server: found.route,
      name: found.model,
      body: withModel(body, name),
      parent: null,
    }
  })
}

function isStreamed(verb: string): boolean {
  return verb.startsWith('stream')
}

/** The addresses of all routes: `/llm/v1` with OpenAI's and Anthropic's endpoints, and `/llm/anthropic/v1` with Anthropic's alone. */
const ADDRESS = /^\/llm\/(anthropic\/)?v1\/(.{1,512})$/
const MODEL = 'models/'
const FILES = /^files(?:$|\/)/

/** Returns the part of a path after the address of all routes; null for other paths. */
export function sharedEndpoint(path: string): string | null {
  const [, anthropic, endpoint] = ADDRESS.exec(path) ?? []
  if (endpoint === undefined) return null
  const isAnthropic =
    endpoint.startsWith(messages.method) || endpoint === 'models' || endpoint.startsWith(MODEL) || FILES.test(endpoint)
  return anthropic === undefined || isAnthropic ? endpoint : null
}

/** Reads a request to the address of all routes: the model in its body chooses the route. */
export function readShared(
  unread: UnreadRequest,
  endpoint: string,
  models: (scope: string) => CallersModels,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method } = unread.arrival.wire
  const dialect = dialectOf(endpoint)
  if (dialect !== null) {
    if (method !== 'POST') return only('POST', method)
    const { operation, method: named } = dialect
    return (
      scopeFault(unread.identity, dialect, null) ??
      useModelBody(unread, dialect, (body) => {
        const found = models(modelScopeOf(operation)).find(body.request.model)
        return isDenial(found)
          ? found
          : { operation, method: named, server: found.route, name: found.model, body, parent: null }
      })
    )
  }
  if (endpoint !== 'models' && !endpoint.startsWith(MODEL)) return noEndpoint(endpoint)
  if (method !== 'GET') return only('GET', method)
  const list = { operation: 'model.info', method: 'models', server: ALL_ROUTES, body: null, parent: null } as const
  if (endpoint === 'models') return { ...list, name: null }
  const name = decoded(endpoint.slice(MODEL.length))
  return name === null ? deny('not_found', 'no such model') : { ...list, name }
}

/** Endpoints that are refused by name, by the first word of their path that is one of these, with the reason. */
const REFUSED: Readonly<Record<string, string>> = {
  uploads: 'files of the account have no owner: send content in the request itself',
  vector_stores: 'their files have no owner: send content in the request itself',
  containers: 'their files have no owner: send content in the request itself',
}

/** Returns the refusal of an endpoint that the gateway does not have. */
export function noEndpoint(endpoint: string): Denial {
  const name = endpoint.split('/').find((word) => Object.hasOwn(REFUSED, word))
  return name === undefined
    ? deny('not_found', `no endpoint ${endpoint}`)
    : deny('not_built', `${name} is not built yet in this version: ${REFUSED[name]}`)
}

/** Clients encode the slash of a name. */
function decoded(name: string): string | null {
  try {
    return decodeURIComponent(name)
  } catch {
    return null
  }
}

export function only(allow: string, method: string): Denial {
  return deny('method_not_allowed', `${method} is not a method of this endpoint`, { data: { allow } })
}
