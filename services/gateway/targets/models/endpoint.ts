import { createHash } from 'node:crypto'
import { withoutTrailing } from '@plat/core'
import { jurisdictionsOf } from '@plat/resources/regions'
import type { ModelEndpointEntry } from '@plat/resources/rendered'
import { type CredentialSource, credentialSource } from './credentials/source.ts'
import { baseOf, type Clouds, regionOf, type Wire, wireOf, withEngine } from './providers.ts'

/** An endpoint for the calls of a route: the route's own, or a fallback. */
export interface RouteEndpoint {
  /** Unique among the endpoints of all routes: identifies its health state. */
  readonly key: string
  /** The provider's account behind it, among those of the route: content that is stored there is owned by account. */
  readonly account: string
  /** Origin, as used in metrics and records. */
  readonly label: string
  /** Name of the route. */
  readonly route: string
  /** Provider name, as used in prices. */
  readonly provider: string
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /**
   * Prefixes of `<provider>/<model>` in the keys of prices for only this route or upstream, the narrowest first. An upstream is
   * named by its base URL or its origin.
   */
  readonly priceScopes: readonly string[]
  readonly credential: CredentialSource
  /** Share of the route's calls, relative to its other endpoints; 0: only if no other can serve a call. */
  readonly weight: number
  /** Maximum requests per minute, or null. */
  readonly requestsPerMinute: number | null
  readonly wire: Wire
  /** Jurisdiction for its own model, or null if unknown. */
  readonly jurisdiction: string | null
  /** Region of its provider, or null. */
  readonly region: string | null
  /** Returns true for models that take `max_completion_tokens` in OpenAI's API. */
  isReasoning(model: string): boolean
  /** Maps a requested model (null for none) to the provider's; null if none is defined. */
  modelFor(requested: string | null): string | null
  /** Jurisdiction of a request for this model: with Bedrock the model determines the routing. */
  jurisdictionFor(requested: string | null): string | null
}

/** Context of an endpoint within its route. */
interface EndpointContext {
  readonly route: string
  readonly aliases: ReadonlyMap<string, string>
  readonly isFallback: boolean
  /** As set in the route; undefined: detected by the model's name. */
  readonly reasoning: boolean | undefined
  readonly clouds: Clouds
}

/** OpenAI families that use `max_completion_tokens`, with or without a vendor prefix. */
const REASONING = /^(?:[^/]+\/)*(?:o[1-9]|gpt-[5-9])/

/** Length of the digest in a key, in hex digits. */
const DIGEST_CHARACTERS = 32

/**
 * Identifies an endpoint by everything that determines destination and payer, so that two providers, models or credentials at one
 * address share neither circuits nor rates. It is the same in every replica, and reveals no path of a key file.
 */
function keysOf(
  { provider = 'openai', mode = '', apiVersion = '', project = '', apiKeyFile = '', auth = {} }: ModelEndpointEntry,
  { route, upstream, model, region }: { route: string; upstream: string; model: string | null; region: string },
): Pick<RouteEndpoint, 'key' | 'account'> {
  const credential = Object.entries(auth)
    .filter(([, value]) => value !== '')
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  const account = [upstream, provider, mode, region, project, apiKeyFile, credential]
  return { key: digestOf(route, [...account, apiVersion, model]), account: digestOf(route, account) }
}

function digestOf(route: string, identity: readonly unknown[]): string {
  const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex')
  return [route, digest.slice(0, DIGEST_CHARACTERS)].join('/')
}

function priceScopes(route: string, upstream: string): readonly string[] {
  const { href, origin } = new URL(upstream)
  const byUpstream = [...new Set([withoutTrailing(href, '/'), origin])].map((one) => `${one}#`)
  const byRoute = `llm/${route}#`
  return [...byUpstream.map((one) => byRoute + one), byRoute, ...byUpstream]
}

/**
 * A fallback inherits nothing: keys that it omits have their defaults (docs/spec/gateway.md, `fallbacks`). The first endpoint gets
 * a translated name, else its own model, else the requested one. A fallback has other model names, so its own model precedes
 * a translated one.
 */
export function endpointOf(
  { route, aliases, isFallback, reasoning, clouds }: EndpointContext,
  given: ModelEndpointEntry,
): RouteEndpoint {
  const entry = withEngine(given, clouds)
  const upstream = baseOf(entry, clouds)
  const model = entry.model || null
  const wire = wireOf(entry)
  const region = regionOf(entry, clouds)
  const modelFor = (name: string | null) => {
    const translated = name === null ? null : (aliases.get(name) ?? null)
    return (isFallback ? (model ?? translated) : (translated ?? model)) ?? name
  }
  const jurisdictionOf = jurisdictionsOf({ ...entry, upstream, region })
  return {
    ...keysOf(entry, { route, upstream, model, region }),
    label: new URL(upstream).origin,
    route,
    provider: wire.provider,
    upstream,
    priceScopes: priceScopes(route, upstream),
    credential: credentialSource(entry, region),
    weight: entry.weight ?? 1,
    requestsPerMinute: entry.requestsPerMinute || null,
    wire,
    jurisdiction: jurisdictionOf(model),
    region: region || null,
    isReasoning: (name) => reasoning ?? REASONING.test(name),
    modelFor,
    jurisdictionFor: (name) => jurisdictionOf(modelFor(name)),
  }
}
