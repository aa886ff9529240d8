import type { Call } from '../../../call/index.ts'
import { ModelBody } from '../request.ts'
import type { Speech } from '../translate/all.ts'

/** One endpoint of a route, as the plane needs it. */
export interface ModelEndpoint {
  /** Tells it from all others. */
  readonly key: string
  /** How metrics and records name it. */
  readonly label: string
  /** Name of the route. */
  readonly route: string
  readonly provider: string
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /** What stands before `<provider>/<model>` in the key of a price for its route or its upstream alone, the narrowest first. */
  readonly priceScopes: readonly string[]
  /** Requests that it may be sent in a minute; null: unlimited. */
  readonly requestsPerMinute: number | null
  /** Of its provider; null: it has none. */
  readonly region: string | null
  readonly wire: EndpointWire
  /** The model that it is asked for where the caller asked for this one; null: nobody names one. */
  modelFor(asked: string | null): string | null
  /** Where it processes a request in which the caller named this model; null when that is not known. */
  jurisdictionFor(asked: string | null): string | null
}

/** One request, as whoever signs it needs it. */
export interface Presented extends Address {
  readonly method: string
  readonly body: Uint8Array | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** How endpoints learn that it is the gateway who asks. */
export interface Credentials<E = ModelEndpoint> {
  /** Whether what the endpoint wants to be shown is there. */
  isReady(endpoint: E): boolean
  /** The headers that show it; empty: it wants none. */
  headers(endpoint: E, request: Presented): Readonly<Record<string, string>>
}

/** What of an endpoint depends on its provider. */
export interface EndpointWire {
  /** Endpoints below `/v1/` that it serves. */
  readonly methods: ReadonlySet<string>
  /** In which words it is asked and answers; `openai` stands for those of the caller, whatever they are. */
  readonly speaks: Speech
  /** Sent with every request, over what the caller sent. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent where the caller sent none. */
  readonly defaults: Readonly<Record<string, string>>
  /** The path names the model. */
  readonly perModel: boolean
  /** Path and query below the base URL. */
  pathOf(method: string, model: string | null, stream: boolean): string
}

/** Where a request goes. */
export interface Address {
  readonly origin: string
  /** Path and query. */
  readonly path: string
}

const COMPLETIONS = 'chat/completions'

/** The addresses of endpoints. That of completions is parsed once for each, as long as the endpoint is served. */
export class Addresses {
  readonly #completions = new WeakMap<Reached, Address>()

  /** Throws on a base URL that is none. */
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
  const stream = body instanceof ModelBody && body.request.stream
  const { origin, pathname, search } = new URL(
    upstream + wire.pathOf(isModel ? `${method}/${name}` : method, model, stream),
  )
  return { origin, path: pathname + search }
}
