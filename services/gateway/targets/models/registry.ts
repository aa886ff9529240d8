import type { ModelRouteEntry, ModelsFile } from '@plat/resources/rendered'
import { type Denial, deny, type Identity, type Target } from '../../call/index.ts'
import { endpointOf, type RouteEndpoint } from './endpoint.ts'
import type { Clouds } from './providers.ts'

/** One model route as the gateway serves it. */
export interface Route {
  readonly name: string
  /** Without it nobody may call the route: `models:<name>`. */
  readonly scope: string
  /** The route as policies match it and records name it: `llm/<name>`. */
  readonly server: string
  /** The route's own first, then its fallbacks in order. */
  readonly endpoints: readonly [RouteEndpoint, ...RouteEndpoint[]]
  /** Empty: any. */
  readonly namespaces: ReadonlySet<string>
  /** `<ns>/<agent>` or `<agent>`; empty: any. */
  readonly agents: ReadonlySet<string>
  /** Where its endpoints are asked first; null: the tier of the session says. */
  readonly preferJurisdiction: string | null
  /** Class of what sessions send that received no data of a higher one. */
  readonly dataClass: Target['dataClass']
  /** Provider-hosted tools that a request may name. */
  readonly providerTools: ReadonlySet<string>
  /** Null: unlimited. */
  readonly maxTokensPerRequest: number | null
  /** `dlpProfile`; null: it names none. */
  readonly dlpProfile: string | null
  /** Of each session; null: unlimited. */
  readonly tokensPerMinute: number | null
  /** Whether output is limited by `max_completion_tokens`: as the route says, else by the model's name. */
  takesCompletionTokens(model: string): boolean
}

/** Model routes by name. */
export class Routes {
  readonly #routes: ReadonlyMap<string, Route>

  constructor(routes: ReadonlyMap<string, Route>) {
    this.#routes = routes
  }

  /** Feeds `plat_gateway_model_routes`. */
  get size(): number {
    return this.#routes.size
  }

  get endpoints(): readonly RouteEndpoint[] {
    return [...this.#routes.values()].flatMap(({ endpoints }) => endpoints)
  }

  route(name: string): Route | null {
    return this.#routes.get(name) ?? null
  }

  /** The route for a caller that has its scope. */
  resolve({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>, name: string): Route | Denial {
    const route = this.route(name)
    if (route === null) return deny('unknown_route', `no model route named ${name.slice(0, 128)}`)
    const { namespaces, agents } = route
    const isOpen = agents.size === 0 || agents.has(`${namespace}/${agent}`) || agents.has(agent)
    if (isOpen && (namespaces.size === 0 || namespaces.has(namespace))) return route
    return deny('forbidden', `the model route ${name} is not for this agent`)
  }
}

/** OpenAI's families that take `max_completion_tokens`, with or without a vendor's prefix. */
const REASONING = /^(?:[^/]+\/)*(?:o[1-9]|gpt-[5-9])/

/** No region of AWS, and no domain but those that are known. */
const NOWHERE: Clouds = { awsRegion: '', awsSuffix: '' }

/** The routes of one modelsFile (null: none) over the static ones of gateway.json. */
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
  const first = endpointOf({ route: name, aliases, isFallback: false, clouds }, entry)
  const others = (entry.fallbacks ?? []).map((one) =>
    endpointOf({ route: name, aliases, isFallback: true, clouds }, one),
  )
  return {
    name,
    // Put together once, and in one piece: each call looks them up and writes them down.
    scope: ['models', name].join(':'),
    server: ['llm', name].join('/'),
    endpoints: [first, ...others],
    namespaces: new Set(entry.namespaces),
    agents: new Set([...owner, ...(entry.agents ?? [])]),
    preferJurisdiction: entry.preferJurisdiction || null,
    dataClass: entry.dataClass ?? 'internal',
    providerTools: new Set(entry.providerTools),
    maxTokensPerRequest: entry.maxTokensPerRequest || null,
    dlpProfile: entry.dlpProfile || null,
    tokensPerMinute: entry.tokensPerMinute || null,
    takesCompletionTokens: (model) => entry.reasoning ?? REASONING.test(model),
  }
}
