import type { EndpointHealth, ListedEndpoint, ListedRoute } from './parts.ts'
import type { ModelView } from './view.ts'

/**
 * Returns the route with the namespaces and agents that `sees` accepts, or null if it can be used in no such namespace. A bare agent name
 * is one of any namespace.
 */
export function seenRoute(route: ListedRoute, sees: (namespace: string) => boolean): ListedRoute | null {
  const namespaces = [...route.namespaces].filter(sees)
  const agents = [...route.agents].filter((agent) => !agent.includes('/') || sees(agent.split('/')[0] ?? ''))
  if (route.namespaces.size > 0 && namespaces.length === 0) return null
  if (route.agents.size > 0 && agents.length === 0) return null
  return { ...route, namespaces: new Set(namespaces), agents: new Set(agents) }
}

export function modelView(route: ListedRoute, health: ReadonlyMap<string, EndpointHealth>): ModelView {
  const { name, balancing, dataClass, preferJurisdiction, dlpProfile } = route
  const { contextTokens, maxTokensPerRequest, tokensPerMinute } = route
  return {
    id: name,
    namespaces: [...route.namespaces],
    agents: [...route.agents],
    aliases: [...route.aliases],
    balancing,
    dataClass,
    preferJurisdiction,
    dlpProfile,
    providerTools: [...route.providerTools],
    contextTokens,
    maxTokensPerRequest,
    tokensPerMinute,
    endpoints: route.endpoints.map((endpoint, at) => endpointView(endpoint, at > 0, health.get(endpoint.key))),
  }
}

function endpointView(
  endpoint: ListedEndpoint,
  isFallback: boolean,
  health: Partial<EndpointHealth> = {},
): ModelView['endpoints'][number] {
  const { provider, label, jurisdiction, region, weight, requestsPerMinute } = endpoint
  const { isReady = false, failures = 0, retryInMs = null, latencies = [] } = health
  return {
    provider,
    origin: label,
    model: endpoint.modelFor(null),
    isFallback,
    jurisdiction,
    region,
    weight,
    requestsPerMinute,
    isReady,
    circuit: retryInMs === null ? 'closed' : retryInMs === 0 ? 'trial' : 'open',
    failures,
    retryInMs,
    latencies: [...latencies],
  }
}
