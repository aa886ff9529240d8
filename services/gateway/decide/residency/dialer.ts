import { type Dialer, type DialOptions, type Purpose, ResidencyDeniedError } from '@plat/http'
import { type EndpointJurisdictions, jurisdictionOfEndpoint } from '@plat/resources/regions/endpoint'
import type { Rules } from './rules.ts'

/** Purposes of key sets, discovery documents and token endpoints, whose jurisdiction is stated by their origin. */
const ENDPOINT_PURPOSES: ReadonlySet<Purpose> = new Set(['jwks', 'cloud'])

/**
 * Wraps a dialer so that every connection complies with the rules in force when it is requested. Connections opened under other rules
 * are not reused.
 */
export function residentDialer(
  inner: Dialer,
  current: () => Pick<Rules, 'dial' | 'fault'> | null,
  endpoints: EndpointJurisdictions = {},
): Dialer {
  /** The dialer identifies options by object identity. */
  const known = new WeakMap<object, DialOptions>()
  const bound = <O extends DialOptions>(hostname: string, options: O): O => {
    const rules = current()
    if (rules === null) return options
    checkPlace(rules, hostname, options)
    return rules.dial === null ? options : { ...options, residency: rules.dial }
  }
  return {
    client(origin, purpose, options) {
      const rules = current()
      if (rules !== null && options?.jurisdiction !== undefined) checkPlace(rules, new URL(origin).hostname, options)
      const residency = rules?.dial ?? null
      if (residency === null) return inner.client(origin, purpose, options)
      const key = options ?? residency
      const last = known.get(key)
      if (last?.residency === residency) return inner.client(origin, purpose, last)
      const fresh = { ...options, residency }
      known.set(key, fresh)
      return inner.client(origin, purpose, fresh)
    },
    async fetchBytes(url, purpose, options) {
      const target = new URL(url)
      const jurisdiction = ENDPOINT_PURPOSES.has(purpose) ? jurisdictionOfEndpoint(target, endpoints) : null
      return await inner.fetchBytes(
        url,
        purpose,
        bound(target.hostname, jurisdiction === null ? options : { ...options, jurisdiction }),
      )
    },
    async connect(target, purpose, options) {
      return await inner.connect(target, purpose, bound(target.hostname, options))
    },
    close: () => inner.close(),
  }
}

/** Data of guards, sinks, notifiers, collectors and token endpoints counts as `internal`. Throws `ResidencyDeniedError`. */
function checkPlace({ fault }: Pick<Rules, 'fault'>, hostname: string, { jurisdiction }: DialOptions): void {
  if (jurisdiction === undefined) return
  const why = fault({ jurisdiction, dataClass: 'internal' })
  if (why !== null) throw new ResidencyDeniedError(hostname, hostname, why)
}
