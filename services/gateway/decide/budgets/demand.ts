import type { Body, Call } from '../../call/index.ts'

/** How prices name a model at one endpoint. */
export interface PricedModel {
  /** `<provider>/<model>`, the model as the provider is asked for it. */
  readonly key: string
  /** What stands before the key where a price is for a route or an upstream alone, the narrowest first. */
  readonly scopes: readonly string[]
}

/** What a model call may use, as its plane and its route know it. */
export interface ModelDemand {
  readonly priced: PricedModel
  /** The same for the other endpoints that may answer instead. */
  readonly otherPriced: readonly PricedModel[]
  /** The prompt has at most so many tokens. */
  readonly inputTokens: number
  /** False: nothing bounds the tokens of the prompt, such as those of an image. */
  readonly bounded: boolean
  /** What the caller selects beyond the plain prices: `service_tier=priority`. */
  readonly options: readonly string[]
  /** Each choice is generated, and paid, on its own. */
  readonly choices: number
  /** Output tokens that each choice may have, as the caller wrote it; null: it set no limit. */
  readonly maxTokens: number | null
  /** `maxTokensPerRequest` of the route; null: none. */
  readonly routeMaxTokens: number | null
  /** Tokens that a session may use on this route in a minute; null: unlimited. */
  readonly tokensPerMinute: number | null
  /** The body with another limit of output tokens in it. */
  clamp(maxTokens: number): Body
}

/** Null: not a call that generates tokens. `compose` answers from the model plane and its routes. */
export type DemandOf = (call: Call<'target'>) => ModelDemand | null
