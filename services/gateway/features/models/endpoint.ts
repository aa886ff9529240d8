import type { ModelEndpointEntry } from '@plat/resources/rendered'
import { type AwsSigning, baseOf, credentialSources, type Wire, wireOf } from './providers.ts'

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
  /** Where the key or token that it is presented stands: a file, or `env:` and a variable; null: it takes none. */
  readonly apiKeyFile: string | null
  /** Null: requests are not signed. */
  readonly signing: AwsSigning | null
  /** Requests that it may be sent in a minute; null: unlimited. */
  readonly requestsPerMinute: number | null
  readonly wire: Wire
  /** Where it runs; null: nobody says. */
  readonly jurisdiction: string | null
  /** The model that it is asked for where the caller asked for this one (null: for none); null: nobody names one. */
  modelFor(asked: string | null): string | null
}

/** What an endpoint is told of the route that it is for. */
interface Place {
  readonly route: string
  readonly aliases: ReadonlyMap<string, string>
  readonly isFallback: boolean
  /** Region of AWS where an entry names none. */
  readonly awsRegion: string
}

/**
 * A fallback inherits nothing: whatever an endpoint does not say itself has its default (document 3, `fallbacks`). The first endpoint is
 * asked for a translated name, else for its own, else as the caller asked. A fallback has other names for its models, so its own comes
 * before a translated one.
 */
export function endpointOf({ route, aliases, isFallback, awsRegion }: Place, entry: ModelEndpointEntry): RouteEndpoint {
  const region = entry.region || awsRegion
  const upstream = baseOf(entry, region)
  const { key, signing } = credentialSources(entry, region)
  const model = entry.model || null
  const wire = wireOf(entry)
  return {
    key: [route, upstream, model ?? ''].join(' '),
    label: new URL(upstream).origin,
    route,
    provider: wire.provider,
    upstream,
    apiKeyFile: key,
    signing,
    requestsPerMinute: entry.requestsPerMinute || null,
    wire,
    jurisdiction: entry.jurisdiction || null,
    modelFor(asked) {
      const translated = asked === null ? null : (aliases.get(asked) ?? null)
      return (isFallback ? (model ?? translated) : (translated ?? model)) ?? asked
    },
  }
}
