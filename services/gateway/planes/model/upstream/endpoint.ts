import type { Call, Denial } from '../../../call/index.ts'
import { ModelBody } from '../request.ts'
import type { Speech } from '../translate/translator.ts'

/** One endpoint of a route. */
export interface ModelEndpoint {
  /** Unique key. */
  readonly key: string
  /** The provider's account behind it. */
  readonly account: string
  /** Name in metrics and records. */
  readonly label: string
  /** Name of the route. */
  readonly route: string
  readonly provider: string
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /** Prefixes of `<provider>/<model>` in the keys of prices for only its route or its upstream, the most specific first. */
  readonly priceScopes: readonly string[]
  /** Limit of requests per minute; null: unlimited. */
  readonly requestsPerMinute: number | null
  /** Region of its provider; null: it has none. */
  readonly region: string | null
  readonly wire: EndpointWire
  /** Returns true for models that take `max_completion_tokens` in OpenAI's API. */
  isReasoning(model: string): boolean
  /** Returns the model to request from it when the caller requested this one; null if neither names a model. */
  modelFor(requested: string | null): string | null
  /** Returns the jurisdiction in which it processes requests for this model; null when that is not known. */
  jurisdictionFor(requested: string | null): string | null
}

export interface RequestToSign extends Address {
  readonly method: string
  readonly body: Uint8Array | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

export interface Credentials<E = ModelEndpoint> {
  /** Returns true if the credential of the endpoint is available. */
  isReady(endpoint: E): boolean
  /** Returns the headers with the credential; empty if the endpoint needs none. */
  headers(endpoint: E, request: RequestToSign): Readonly<Record<string, string>>
}

/** Properties of an endpoint that depend on its provider. */
export interface EndpointWire {
  /** Endpoints below `/v1/` that it serves. */
  readonly methods: ReadonlySet<string>
  /** Those that it supports itself; a request for another one is translated. */
  readonly native: ReadonlySet<string>
  /** Its API. */
  readonly speaks: Speech
  /** Sent with every request, replacing headers of the caller. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent if the caller did not send these headers. */
  readonly defaults: Readonly<Record<string, string>>
  /** The path contains the model. */
  readonly perModel: boolean
  /** Returns path and query below the base URL. */
  pathOf(method: string, model: string | null, stream: boolean): string
}

/** Address of a request. */
export interface Address {
  readonly origin: string
  /** Path and query. */
  readonly path: string
}

const COMPLETIONS = 'chat/completions'

/** Addresses of endpoints. That of completions is parsed once per endpoint and cached. */
export class Addresses {
  readonly #completions = new WeakMap<Reached, Address>()

  /** Throws if the base URL is invalid. */
  of(endpoint: Reached, call: EndpointCall, model: string | null): Address {
    if (call.method !== COMPLETIONS || endpoint.wire.perModel) return addressOf(endpoint, call, model)
    const known = this.#completions.get(endpoint)
    if (known !== undefined) return known
    const address = addressOf(endpoint, call, model)
    this.#completions.set(endpoint, address)
    return address
  }
}

type Reached = Pick<ModelEndpoint, 'upstream' | 'wire'>
type EndpointCall = Pick<Call, 'method' | 'name' | 'operation' | 'body'>

function addressOf({ upstream, wire }: Reached, call: EndpointCall, model: string | null): Address {
  const { method, name, operation, body } = call
  const isModel = operation === 'model.info' && name !== null && method === 'models'
  if (operation === 'model.file') return fileAddress(upstream, method, name)
  if (operation === 'model.batch') return batchAddress(upstream, method, name)
  const stream = body instanceof ModelBody && body.request.stream
  const { origin, pathname, search } = new URL(
    upstream + wire.pathOf(isModel ? `${method}/${name}` : method, model, stream),
  )
  return { origin, path: pathname + search }
}

/** Returns the address of a file of an account, or of all of them (null). */
export function fileAddress(upstream: string, method: string, id: string | null): Address {
  const { origin, pathname } = new URL(upstream)
  const base = `${pathname === '/' ? '' : pathname}/files`
  if (id === null) return { origin, path: base }
  return { origin, path: `${base}/${encodeURIComponent(id)}${method === 'files/content' ? '/content' : ''}` }
}

/** Returns the address of a batch of an account, or of all of them (null). */
export function batchAddress(upstream: string, method: string, id: string | null): Address {
  const { origin, pathname } = new URL(upstream)
  const all = method.startsWith('messages/') ? 'messages/batches' : 'batches'
  const base = `${pathname === '/' ? '' : pathname}/${all}`
  if (id === null) return { origin, path: base }
  const verb = method.slice(all.length + 1)
  return {
    origin,
    path: `${base}/${encodeURIComponent(id)}${verb === 'cancel' || verb === 'results' ? `/${verb}` : ''}`,
  }
}

/** Binds calls of the provider `ctxengine` to the contexts of their sessions. */
export interface ContextBinder {
  /** Returns the caller's context, or why the call is refused; null without contexts. `isStale`: the engine does not know it. */
  bind(call: Call<'identity'>, endpoint: ModelEndpoint, isStale: boolean): Promise<string | Denial> | Denial | null
  /** The engine uses the context for another request. */
  busy(): void
}
