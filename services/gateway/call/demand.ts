import type { Body, Call } from './call.ts'
import type { MediaDemand } from './media.ts'

/** A model at one endpoint, as the pricing table names it. */
export interface PricedModel {
  /** `<provider>/<model>`, with the name that the provider uses. */
  readonly key: string
  /** Prefixes of the key for prices of a route or an upstream, narrowest first. */
  readonly scopes: readonly string[]
}

/** Resource bounds of a model call, from its plane and route. */
export interface ModelDemand {
  readonly priced: PricedModel
  /** The other endpoints that may respond instead. */
  readonly otherPriced: readonly PricedModel[]
  /** Upper bound of the prompt's tokens. */
  readonly inputTokens: number
  /** False: the prompt has parts without a token bound, such as images. */
  readonly bounded: boolean
  /** By what not even the context window of a model bounds the cost: `web_search`. Null: nothing, so the window bounds the prompt. */
  readonly openEnd: string | null
  /** Options selected by the caller that change the price: `service_tier=priority`. */
  readonly options: readonly string[]
  /** Number of choices; each is generated and billed separately. */
  readonly choices: number
  /** Output token limit per choice set by the caller; null: none. */
  readonly maxTokens: number | null
  /** `maxTokensPerRequest` of the route; null: none. */
  readonly routeMaxTokens: number | null
  /** Token limit of a session on this route per minute; null: unlimited. */
  readonly tokensPerMinute: number | null
  /** Use beside text, by which it is charged; null: tokens alone. */
  readonly media: MediaDemand | null
  /** Returns the body with another output token limit. */
  clamp(maxTokens: number): Body
}

/** Returns null for calls that do not generate tokens. Implemented by the model plane. */
export type DemandOf = (call: Call<'target'>) => ModelDemand | null
