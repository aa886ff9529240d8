import { createHash } from 'node:crypto'
import { withoutTrailing } from '@plat/core'
import { jurisdictionsOf } from '@plat/resources/regions'
import type { ModelEndpointEntry } from '@plat/resources/rendered'
import { type CredentialSource, credentialSource } from './credentials/source.ts'
import { baseOf, type Clouds, regionOf, type Wire, wireOf } from './providers.ts'

/** One place that answers the calls of a route: the route's own, or one of its fallbacks. */
export interface RouteEndpoint {
  /** Tells it from every other endpoint of every route: what is known of its health is kept under it. */
  readonly key: string
  /** The origin: how metrics and records name it. */
  readonly label: string
  /** Name of the route. */
  readonly route: string
  /** Its name, as prices know it. */
  readonly provider: string
  /** Base URL including `/v1`, without a slash at its end. */
  readonly upstream: string
  /**
   * What stands before `<provider>/<model>` in the key of a price for its route or its upstream alone, the narrowest first. An upstream is
   * named by its base URL or by its origin.
   */
  readonly priceScopes: readonly string[]
  /** How it learns that it is the gateway who asks. */
  readonly credential: CredentialSource
  /** Requests that it may be sent in a minute; null: unlimited. */
  readonly requestsPerMinute: number | null
  readonly wire: Wire
  /** Where it processes requests for its own model; null when that is not known. */
  readonly jurisdiction: string | null
  /** Of its provider; null: it has none. */
  readonly region: string | null
  /** The model that it is asked for where the caller asked for this one (null: for none); null: nobody names one. */
  modelFor(asked: string | null): string | null
  /** Where it processes a request in which the caller named this model: with Bedrock, the model decides how far it is routed. */
  jurisdictionFor(asked: string | null): string | null
}

/** What an endpoint is told of the route that it is for. */
interface EndpointContext {
  readonly route: string
  readonly aliases: ReadonlyMap<string, string>
  readonly isFallback: boolean
  readonly clouds: Clouds
}

/** Bytes of the digest in a key, as hex. */
const DIGEST_CHARACTERS = 32

/**
 * Names an endpoint by all that decides where a request goes and who pays for it, so that two providers, models or credentials at one
 * address share neither circuits nor rates. It is the same in every replica, and tells no path of a key file.
 */
function keyOf(
  { provider = 'openai', mode = '', apiVersion = '', project = '', apiKeyFile = '', auth = {} }: ModelEndpointEntry,
  { route, upstream, model, region }: { route: string; upstream: string; model: string | null; region: string },
): string {
  const credential = Object.entries(auth)
    .filter(([, value]) => value !== '')
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  const identity = [upstream, provider, mode, apiVersion, region, project, model, apiKeyFile, credential]
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
 * A fallback inherits nothing: whatever an endpoint does not say itself has its default (docs/spec/gateway.md, `fallbacks`). The first endpoint is
 * asked for a translated name, else for its own, else as the caller asked. A fallback has other names for its models, so its own comes
 * before a translated one.
 */
export function endpointOf(
  { route, aliases, isFallback, clouds }: EndpointContext,
  entry: ModelEndpointEntry,
): RouteEndpoint {
  const upstream = baseOf(entry, clouds)
  const model = entry.model || null
  const wire = wireOf(entry)
  const region = regionOf(entry, clouds)
  const modelFor = (asked: string | null) => {
    const translated = asked === null ? null : (aliases.get(asked) ?? null)
    return (isFallback ? (model ?? translated) : (translated ?? model)) ?? asked
  }
  const jurisdictionOf = jurisdictionsOf({ ...entry, upstream, region })
  return {
    key: keyOf(entry, { route, upstream, model, region }),
    label: new URL(upstream).origin,
    route,
    provider: wire.provider,
    upstream,
    priceScopes: priceScopes(route, upstream),
    credential: credentialSource(entry, region),
    requestsPerMinute: entry.requestsPerMinute || null,
    wire,
    jurisdiction: jurisdictionOf(model),
    region: region || null,
    modelFor,
    jurisdictionFor: (asked) => jurisdictionOf(modelFor(asked)),
  }
}
