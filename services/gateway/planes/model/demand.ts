import {
  BATCH_PRICE,
  type Call,
  isBesideModels,
  type ModelDemand,
  type PricedModel,
  type Snapshot,
  searchesByItself,
} from '../../call/index.ts'
import { imageTokensAtMost } from './dialects/images.ts'
import { answeredBy } from './note.ts'
import { ModelBody, withMaxTokens } from './request.ts'
import { UploadBody } from './uploads/body.ts'
import type { ModelEndpoint } from './upstream/endpoint.ts'

/** Configuration of a route. */
export interface DemandRoute {
  readonly endpoints: readonly [ModelEndpoint, ...ModelEndpoint[]]
  readonly maxTokensPerRequest: number | null
  readonly tokensPerMinute: number | null
  /** Most input tokens of a request at any of its endpoints; null: not stated. */
  readonly contextTokens: number | null
  /** Returns true if this model accepts `max_completion_tokens`. */
  takesCompletionTokens(model: string): boolean
}

const NO_OTHERS: readonly PricedModel[] = []

/** Returns a function whose result is null for calls that do not generate tokens, and when the route no longer exists. */
export function createDemand(route: (snapshot: Snapshot, key: string) => DemandRoute | null) {
  return (call: Call<'target'>): ModelDemand | null => {
    const { body, snapshot } = call
    const { key, tool } = call.facts.target
    // Files are not charged.
    if (!(body instanceof ModelBody) || tool === null || isBesideModels(call.operation)) return null
    const way = route(snapshot, key)
    if (way === null) return null
    const answering = answeredBy(call)
    const isLine = call.operation === 'model.line'
    const { inputTokensAtMost, options, choices, maxTokens } = body.request
    const inputTokens = inputBound(body, way, call.name)
    return {
      priced: answering === null ? pricedAt(way.endpoints[0], tool) : pricedOf(answering, call),
      otherPriced: way.endpoints.length === 1 ? NO_OTHERS : way.endpoints.slice(1).map((one) => pricedOf(one, call)),
      inputTokens: inputTokens ?? inputTokensAtMost,
      bounded: inputTokens !== null,
      openEnd: openEndIn(body, way, call.name),
      options: isLine ? [...options, BATCH_PRICE] : options,
      choices,
      maxTokens,
      routeMaxTokens: way.maxTokensPerRequest,
      // The provider decides in which minutes it executes a batch.
      tokensPerMinute: isLine ? null : way.tokensPerMinute,
      media: body.dialect.media?.(body.value, body instanceof UploadBody ? body.files : []) ?? null,
      clamp: (tokens) => withMaxTokens(body, tokens, way.takesCompletionTokens(tool)),
    }
  }
}

/**
 * Returns the upper bound of the input tokens of a request: its bytes, with the most that its images can have, or the context window of the
 * models; null: nothing bounds them. Search results are input that none of these bounds, since a model may search several times.
 */
function inputBound(
  { request }: ModelBody,
  { endpoints, contextTokens }: DemandRoute,
  name: string | null,
): number | null {
  const { bounded, images, inputTokensAtMost } = request
  if (openEndIn({ request }, { endpoints }, name) !== null) return null
  if (bounded) return inputTokensAtMost
  const perImage = endpoints.map(imageTokensAtMost)
  const ofImages =
    images === null || perImage.includes(null)
      ? null
      : inputTokensAtMost + images * Math.max(...perImage.map((most) => most ?? 0))
  if (ofImages === null || contextTokens === null) return ofImages ?? contextTokens
  return Math.min(ofImages, contextTokens)
}

/** Returns by what not even a context window bounds the cost of a request; null: nothing. */
function openEndIn(
  { request }: Pick<ModelBody, 'request'>,
  { endpoints }: Pick<DemandRoute, 'endpoints'>,
  name: string | null,
): string | null {
  return (
    request.openEnd ??
    (endpoints.some((one) => searchesByItself(one.modelFor(name))) ? 'the search of this model' : null)
  )
}

/** The model that responded to a call, and its region. */
export interface AnsweringModel {
  /** `<provider>/<model>`, as prices name it. */
  readonly key: string
  /** Region of the provider; null: it has none. */
  readonly region: string | null
}

/** Returns a function whose result is null for calls to other targets, and when the route no longer exists. */
export function createAnswered(route: (snapshot: Snapshot, key: string) => Pick<DemandRoute, 'endpoints'> | null) {
  return (call: Call<'target'>): AnsweringModel | null => {
    const { key, kind } = call.facts.target
    const way = kind === 'model' && !isBesideModels(call.operation) ? route(call.snapshot, key) : null
    if (way === null) return null
    const endpoint = answeredBy(call) ?? way.endpoints[0]
    return { key: pricedOf(endpoint, call).key, region: endpoint.region }
  }
}

/** Returns the name in prices of the model that is requested from an endpoint. */
export function pricedOf(endpoint: ModelEndpoint, { name }: Pick<Call, 'name'>): PricedModel {
  return pricedAt(endpoint, endpoint.modelFor(name) ?? '')
}

function pricedAt({ provider, priceScopes }: ModelEndpoint, model: string): PricedModel {
  return { key: `${provider}/${model}`, scopes: priceScopes }
}
