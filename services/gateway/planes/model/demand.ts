import { type Body, type Call, type Snapshot, searchesByItself } from '../../call/index.ts'
import { ModelBody, withMaxTokens } from './request.ts'
import type { ModelEndpoint } from './upstream/endpoint.ts'
import { answeredBy } from './upstream/failover.ts'

/** How prices name the model that an endpoint is asked for. */
export interface PricedModel {
  /** `<provider>/<model>`, the model as the provider is asked for it. */
  readonly key: string
  /** `ModelEndpoint.priceScopes`. */
  readonly scopes: readonly string[]
}

/** What bounds a model call: for whoever holds money for it before it is forwarded. */
export interface ModelDemand {
  /** Of the endpoint that answered, before that of the first. */
  readonly priced: PricedModel
  /** Of the other endpoints that may answer instead. */
  readonly otherPriced: readonly PricedModel[]
  readonly inputTokens: number
  readonly bounded: boolean
  /** What the caller selects beyond the plain prices: `service_tier=priority`. */
  readonly options: readonly string[]
  readonly choices: number
  readonly maxTokens: number | null
  /** `maxTokensPerRequest` of the route; null: none. */
  readonly routeMaxTokens: number | null
  /** Tokens that a session may use on this route in a minute; null: unlimited. */
  readonly tokensPerMinute: number | null
  /** The body with another limit of output tokens in it. */
  clamp(maxTokens: number): Body
}

/** What the routes say of it. */
export interface DemandRoute {
  readonly endpoints: readonly [ModelEndpoint, ...ModelEndpoint[]]
  readonly maxTokensPerRequest: number | null
  readonly tokensPerMinute: number | null
  /** Whether this model takes `max_completion_tokens`. */
  takesCompletionTokens(model: string): boolean
}

const NO_OTHERS: readonly PricedModel[] = []

/** Null: not a call that generates tokens, or one whose route has gone. */
export function createDemand(route: (snapshot: Snapshot, key: string) => DemandRoute | null) {
  return (call: Call<'target'>): ModelDemand | null => {
    const { body, snapshot } = call
    const { key, tool } = call.facts.target
    const way = body instanceof ModelBody && tool !== null ? route(snapshot, key) : null
    if (!(body instanceof ModelBody) || tool === null || way === null) return null
    const answering = answeredBy(call)
    const { inputTokensAtMost, bounded, options, choices, maxTokens } = body.request
    return {
      priced: answering === undefined ? pricedAt(way.endpoints[0], tool) : pricedOf(answering, call),
      otherPriced: way.endpoints.length === 1 ? NO_OTHERS : way.endpoints.slice(1).map((one) => pricedOf(one, call)),
      inputTokens: inputTokensAtMost,
      // What a search finds is input that no bytes of the request bound.
      bounded: bounded && !way.endpoints.some((one) => searchesByItself(one.modelFor(call.name))),
      options,
      choices,
      maxTokens,
      routeMaxTokens: way.maxTokensPerRequest,
      tokensPerMinute: way.tokensPerMinute,
      clamp: (tokens) => withMaxTokens(body, tokens, way.takesCompletionTokens(tool)),
    }
  }
}

/** Which model answered a call, and where. */
export interface AnsweringModel {
  /** `<provider>/<model>`, as prices name it. */
  readonly key: string
  /** Region of the provider; null: it has none. */
  readonly region: string | null
}

/** Null: not a call to a model, or one whose route has gone. */
export function createAnswered(route: (snapshot: Snapshot, key: string) => Pick<DemandRoute, 'endpoints'> | null) {
  return (call: Call<'target'>): AnsweringModel | null => {
    const { key, kind } = call.facts.target
    const way = kind === 'model' ? route(call.snapshot, key) : null
    if (way === null) return null
    const endpoint = answeredBy(call) ?? way.endpoints[0]
    return { key: pricedOf(endpoint, call).key, region: endpoint.region }
  }
}

/** How prices name the model that an endpoint is asked for. */
export function pricedOf(endpoint: ModelEndpoint, { name }: Pick<Call, 'name'>): PricedModel {
  return pricedAt(endpoint, endpoint.modelFor(name) ?? '')
}

function pricedAt({ provider, priceScopes }: ModelEndpoint, model: string): PricedModel {
  return { key: `${provider}/${model}`, scopes: priceScopes }
}
