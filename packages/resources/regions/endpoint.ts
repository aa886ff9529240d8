/** Jurisdiction of key sets, discovery documents and token endpoints. */
import { jurisdictionOf, placeContradictions } from './place.ts'

/** Jurisdictions by origin (`https://login.example`), as `endpointJurisdictions` of gateway.json states them. */
export type EndpointJurisdictions = Readonly<Record<string, string>>

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/
/** Names of services in the cluster of the gateway. */
const CLUSTER = /\.svc(?:\.cluster\.local)?$/

/** Returns whether the host name of a URL is this machine. */
export function isLoopbackName(hostname: string): boolean {
  return LOOPBACK.test(hostname)
}

/**
 * Returns the jurisdiction of an endpoint: that of the cloud region in its URL, else the stated one of its origin. Empty: unknown.
 * Null: the endpoint is where the gateway is, unless another place is stated: on this machine, or a service of the cluster.
 */
export function jurisdictionOfEndpoint(url: URL, stated: EndpointJurisdictions): string | null {
  const own = Object.hasOwn(stated, url.origin) ? stated[url.origin] : undefined
  const jurisdiction = jurisdictionOf({ upstream: url.href, jurisdiction: own }, null)
  if (jurisdiction !== null) return jurisdiction
  return isLoopbackName(url.hostname) || CLUSTER.test(url.hostname) ? null : ''
}

/** Returns why an entry of `endpointJurisdictions` is refused, or null. */
export function endpointFault(origin: string, jurisdiction: string): string | null {
  const url = URL.parse(origin)
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url === null || !isHttp || url.origin !== origin)
    return `is not an origin: write ${isHttp ? url.origin : 'it as https://login.example'}`
  return placeContradictions({ upstream: origin, jurisdiction }, null)[0]?.[1] ?? null
}
