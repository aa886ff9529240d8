import type { ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import { type Denial, deny, type Identity, type Target } from '../../call/index.ts'
import type { Balancing } from './balance.ts'
import { endpointOf, type RouteEndpoint } from './endpoint.ts'
import type { Clouds } from './providers.ts'

/** Retries of a route. */
export interface RetryPolicy {
  readonly attempts: number
  /** Share of the route's calls that may be retried. */
  readonly budgetPercent: number
  readonly maxWaitMs: number
}

/** A model route. */
export interface Route {
  readonly name: string
  /** Required scope: `models:<name>`. */
  readonly scope: string
  /** Name in policies and records: `llm/<name>`. */
  readonly server: string
  /** The route's own endpoint, then its fallbacks in order. */
  readonly endpoints: readonly [RouteEndpoint, ...RouteEndpoint[]]
  /** Names that callers may use for models. */
  readonly aliases: readonly string[]
  /** Empty for any. */
  readonly namespaces: ReadonlySet<string>
  /** `<ns>/<agent>` or `<agent>`; empty for any. */
  readonly agents: ReadonlySet<string>
  readonly balancing: Balancing
  /** Null: failed requests are not repeated. */
  readonly retries: RetryPolicy | null
  /** Null: responses are not stored. */
  readonly cache: { readonly ttlMs: number; readonly scope: 'session' | 'user' | 'agent' | 'route' } | null
  /** Preferred jurisdiction of endpoints; null for that of the session's tier. */
  readonly preferJurisdiction: string | null
  /** Class of data from sessions that received no data of a higher class. */
  readonly dataClass: Target['dataClass']
  /** Allowed provider-hosted tools. */
  readonly providerTools: ReadonlySet<string>
  /** Null for unlimited. */
  readonly maxTokensPerRequest: number | null
  /** Null: not stated. */
  readonly contextTokens: number | null
  /** `dlpProfile`, or null. */
  readonly dlpProfile: string | null
  /** Limit of each session, or null. */
  readonly tokensPerMinute: number | null
  /** Whether output is limited by `max_completion_tokens`: as set in the route, else by the model's name. */
  takesCompletionTokens(model: string): boolean
}

/** Model routes by name. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Route>

  constructor(routes: ReadonlyMap<string, Route>) {
    this.#routes = routes
  }

  /** Value of `plat_gateway_model_routes`. */
  get size(): number {
    return this.#routes.size
  }

  get listed(): readonly Route[] {
    return [...this.#routes.values()]
  }

  get endpoints(): readonly RouteEndpoint[] {
    return [...this.#routes.values()].flatMap(({ endpoints }) => endpoints)
  }

  route(name: string): Route | null {
    return this.#routes.get(name) ?? null
  }

  /** Returns the route for a caller with its scope. */
  resolve({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>, name: string): Route | Denial {
    const route = this.route(name)
    if (route === null) return deny('unknown_route', `no model route named ${name.slice(0, 128)}`)
    const { namespaces, agents } = route
    const isOpen = agents.size === 0 || agents.has(`${namespace}/${agent}`) || agents.has(agent)
    if (isOpen && (namespaces.size === 0 || namespaces.has(namespace))) return route
    return deny('forbidden', `the model route ${name} is not for this agent`)
  }
}

/** No default region of AWS and no custom domain. */
const NOWHERE: Clouds = { awsRegion: '', awsSuffix: '' }

/** Merges the routes of a modelsFile (null for none) over the static ones of gateway.json. */
export function buildRoutes(
  file: ModelsFile | null,
  statics: Readonly<Record<string, ModelRouteEntry>>,
  clouds: Clouds = NOWHERE,
): Routes {
  const fixed = Object.entries(statics).map(([name, route]): [string, Route] => [name, routeOf(name, route, clouds)])
  const rendered = Object.entries(file?.models ?? {}).map(([name, entry]): [string, Route] => [
    name,
    routeOf(name, entry, clouds),
  ])
  return new Routes(new Map([...fixed, ...rendered]))
}

function routeOf(name: string, entry: ModelRouteEntry, clouds: Clouds): Route {
  const owner = entry.agent === undefined ? [] : [entry.agent]
  const aliases = new Map(Object.entries(entry.aliases ?? {}))
  const context = { route: name, aliases, reasoning: entry.reasoning, clouds }
  const first = endpointOf({ ...context, isFallback: false }, entry)
  const others = (entry.fallbacks ?? []).map((one) => endpointOf({ ...context, isFallback: true }, one))
  return {
    name,
    // Flat strings, built once: each call looks them up and records them.
    scope: ['models', name].join(':'),
    server: ['llm', name].join('/'),
    endpoints: [first, ...others],
    aliases: [...aliases.keys()],
    namespaces: new Set(entry.namespaces),
    agents: new Set([...owner, ...(entry.agents ?? [])]),
    balancing: entry.balancing ?? 'order',
    retries: retriesOf(entry.retries),
    cache: cacheOf(entry.cache),
    preferJurisdiction: entry.preferJurisdiction || null,
    dataClass: entry.dataClass ?? 'internal',
    providerTools: new Set(entry.providerTools),
    contextTokens: entry.contextTokens || null,
    maxTokensPerRequest: entry.maxTokensPerRequest || null,
    dlpProfile: entry.dlpProfile || null,
    tokensPerMinute: entry.tokensPerMinute || null,
    takesCompletionTokens: first.isReasoning,
  }
}

function retriesOf({ attempts = 0, budgetPercent = 20, maxWaitSeconds = 10 }: ModelRouteEntry['retries'] = {}) {
  return attempts === 0 ? null : { attempts, budgetPercent, maxWaitMs: maxWaitSeconds * 1000 }
}

function cacheOf({ ttlSeconds = 0, scope = 'user' }: ModelRouteEntry['cache'] = {}) {
  return ttlSeconds === 0 ? null : { ttlMs: ttlSeconds * 1000, scope }
}
